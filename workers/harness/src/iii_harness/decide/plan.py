"""The calls an assistant message asks for (harness-loop 8.1): total over any content, one planned call per block.

Checkpoints and result entries are keyed by call id, so an id that the turn already used is renamed in the message
before it is persisted; `renamed` does that, `plan` reads the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any, Literal, cast

import msgspec

from iii_harness.decide import entry_ids
from iii_harness.decide.canonical import compact
from iii_harness.ports import Block
from iii_kit.bus import Json

WRAPPER = "agent_trigger"
"""The one tool of the `agent_trigger` exposure."""

SUBMIT = "submit_result"
"""The tool that takes a structured result; never dispatched."""

MARKERS = ("_partial", "_raw")
"""Keys by which a provider says that the arguments are not what the model wrote in full."""


_kind_of = cast("Callable[[Any], Any]", type)


class PlannedCall(msgspec.Struct, frozen=True):
    """One call: what to invoke with what."""

    id: str
    target: str
    arguments: Json
    kind: Literal["trigger", "submit"] = "trigger"
    description: str | None = None


def plan(content: Any, *, expose: str) -> list[PlannedCall]:
    """The calls of a message's content, in order."""
    return [_planned(block, expose) for block in calls_of(content)]


def calls_of(content: Any) -> list[Block]:
    """The `function_call` blocks of a content."""
    calls: list[Block] = []
    if _kind_of(content) is list:
        for block in content:
            if _kind_of(block) is dict and block.get("type") == "function_call":
                calls.append(block)
    return calls


def renamed(content: Any, *, step: int, used: Collection[str]) -> Any:
    """The content with every call id unique within the turn: a clash becomes `<id>_<step>`, then `<id>_<step>_2`..."""
    calls = calls_of(content)
    if not calls:
        return content
    taken = set(map(entry_ids.safe, used))
    fresh: dict[int, Block] = {}
    for call in calls:
        call_id = _fresh(_text(call.get("id")), step, taken)
        taken.add(entry_ids.safe(call_id))
        if call.get("id") != call_id:
            fresh[id(call)] = {**call, "id": call_id}
    return [fresh.get(id(block), block) for block in content] if fresh else content


def _fresh(call_id: str, step: int, taken: Collection[str]) -> str:
    if not entry_ids.reserved(call_id) and entry_ids.safe(call_id) not in taken:
        return call_id
    base = f"{call_id}_{step}"
    candidate, n = base, 2
    while entry_ids.reserved(candidate) or entry_ids.safe(candidate) in taken:
        candidate, n = f"{base}_{n}", n + 1
    return candidate


def _planned(block: Block, expose: str) -> PlannedCall:
    call_id, name, arguments = _text(block.get("id")), _text(block.get("function_id")), block.get("arguments")
    if name == SUBMIT:
        return PlannedCall(call_id, name, arguments, "submit")
    if (name != WRAPPER and expose == "native") or _kind_of(arguments) is not dict:
        return PlannedCall(call_id, name, arguments)
    fields = cast("dict[str, Any]", arguments)
    function = fields.get("function")
    named = isinstance(function, str)
    wrapped = named or name == WRAPPER
    description = fields.get("description") if wrapped else None
    return PlannedCall(
        call_id,
        function if named else name,
        _payload(fields, wrapped=wrapped),
        description=description if isinstance(description, str) else None,
    )


def _payload(fields: dict[str, Any], *, wrapped: bool) -> Json:
    if "payload" not in fields:
        dropped = ("function", "description") if wrapped else ()
        return {key: value for key, value in fields.items() if key not in dropped}
    payload: Any = fields["payload"]
    if isinstance(payload, str):
        payload = _leading_object(payload)
    if _kind_of(payload) is dict and not fields.keys().isdisjoint(MARKERS):
        return {**payload, **{key: fields[key] for key in MARKERS if key in fields}}
    return payload


def _leading_object(text: str) -> Json:
    stripped = text.lstrip()
    if not stripped.startswith("{"):
        return text
    try:
        value = _decoder.raw_decode(stripped)[0]
        compact(value)  # an escaped lone surrogate is read, and can be written by nobody
    except (ValueError, RecursionError):
        return text
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
