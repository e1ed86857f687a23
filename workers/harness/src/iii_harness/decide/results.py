"""What a call gave, as content, details and error flag (harness-loop 8.3, 8.4)."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec.structs import replace
from pydantic import ConfigDict, TypeAdapter, ValidationError

from iii_contracts.messages import ContentBlock
from iii_harness.decide.canonical import compact, size
from iii_harness.ports import Block
from iii_kit.bus import Json
from iii_kit.encoding import nested_deeper_than
from iii_kit.errors import BusError

LEAST_CAP = 1024
"""A cap below this counts as this: the text that replaces a result must itself fit."""

MOST_LEVELS = 100
"""Levels of a result: its message can still be sent inside everything that carries messages."""

_blocks: TypeAdapter[list[ContentBlock]] = TypeAdapter(list[ContentBlock], config=ConfigDict(defer_build=True))


class Result(msgspec.Struct, frozen=True):
    """The result of one call, as its transcript entry has it."""

    content: list[Block]
    details: Json
    is_error: bool = False


def text_block(text: str) -> Block:
    """A text block."""
    return {"type": "text", "text": text}


def of_value(value: Json) -> Result:
    """The result of a call that was answered."""
    if isinstance(value, str):
        return Result([text_block(value)], value)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        flag = fields.get("is_error")
        return Result(_content(fields), fields, flag if isinstance(flag, bool) else False)
    return Result([text_block(compact(value))], value)


def _content(fields: dict[str, Any]) -> list[Block]:
    """The value's own content blocks, so that images pass through; else the value as compact JSON."""
    own = fields.get("content")
    if isinstance(own, list) and own:
        try:
            _blocks.validate_python(own)
        except ValidationError:
            pass
        else:
            return cast("list[Block]", own)
    return [text_block(compact(fields))]


def of_error(function_id: str, error: BusError) -> Result:
    """The result of a call that failed."""
    details = {"error": {"code": error.code, "message": error.message}}
    return Result([text_block(f"{function_id}: {error.message}")], details, is_error=True)


def capped(result: Result, limit: int) -> Result:
    """The result, or what stands for one that is larger than `limit` bytes of JSON (0 = no limit) or too deep."""
    if limit == 0:
        return _flat(result)
    limit = max(limit, LEAST_CAP)
    measured = size([result.content, result.details])
    if measured <= limit:
        return _flat(result)
    text = (
        f"<omitted: result was ~{-(-measured // 1024)} KB, over the {limit // 1024} KB harness result cap; "
        "re-call with narrower arguments, or ask for a slice or summary instead>"
    )
    details = {"result_capped": {"original_bytes": measured, "max_bytes": limit}}
    return replace(result, content=[text_block(text)], details=details)


def _flat(result: Result) -> Result:
    """The result without what is nested so deeply that no message could carry it; as text it is still there."""
    if not nested_deeper_than([result.content, result.details], MOST_LEVELS):
        return result
    details = {"nesting_capped": {"max_levels": MOST_LEVELS}}
    if nested_deeper_than(result.content, MOST_LEVELS):
        return replace(result, content=[text_block(compact(result.content))], details=details)
    return replace(result, details=details)
