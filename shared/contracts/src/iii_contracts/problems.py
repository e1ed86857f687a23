"""What is wrong with a request, in words that name the field and the limit.

The phrases of a missing field and of a wrong type are those that clients of the engine match on (engine spec 5.4).
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from pydantic import ValidationError

_EXPECTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "a boolean",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def describe(error: ValidationError) -> str:
    """The first problem of a failed validation, as one sentence."""
    first = error.errors(include_url=False)[0]
    kind, value = first["type"], first.get("input")
    place = _place(first["loc"])
    if kind == "missing":
        at = _place(first["loc"][:-1])
        return f"missing field `{first['loc'][-1]}`" + (f" in `{at}`" if at else "")
    if kind == "extra_forbidden":
        return f"unknown field `{place}`"
    if kind in _EXPECTED:
        return _at(place, f"invalid type: {shown(value)}, expected {_EXPECTED[kind]}")
    return _at(place, f"{first['msg']}, got {shown(value)}")


def shown(value: Any) -> str:
    """A JSON value as an error text shows it: its kind, and scalars with their value (at most 80 characters)."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"boolean `{str(value).lower()}`"
    if isinstance(value, int):
        return f"integer `{value}`"
    if isinstance(value, float):
        return f"floating point `{value}`"
    if isinstance(value, str):
        text = json.dumps(value[:80], ensure_ascii=False)
        return f"string {text}" if len(value) <= 80 else f"string {text} and {len(value) - 80} more characters"
    if isinstance(value, Mapping):
        return "map"
    return "sequence" if isinstance(value, (list, tuple)) else type(value).__name__


def _place(loc: tuple[Any, ...]) -> str:
    parts = [str(part) for part in loc if not (isinstance(part, str) and part.startswith("function-"))]
    return ".".join(parts)


def _at(place: str, problem: str) -> str:
    return f"`{place}`: {problem}" if place else problem


def is_object(value: Any) -> bool:
    """True for a JSON object."""
    return isinstance(cast("object", value), dict)
