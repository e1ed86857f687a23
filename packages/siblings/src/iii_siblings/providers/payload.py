"""JSON from outside: what a provider's server sends may hold what the bus refuses."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

_COUNTS = ("input", "output", "cache_read", "cache_write", "reasoning")
_decode = msgspec.json.Decoder().decode


def parsed(data: bytes | str) -> Any:
    """The value of JSON, with lone surrogates replaced and numbers finite. Raises `ValueError` for anything else."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeError):
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        return _scrubbed(json.loads(text, parse_constant=_no_number))


def scrub(text: str) -> str:
    """`text` without lone surrogates."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def field(value: Any, *path: str | int) -> Any:
    """What lies at `path` inside JSON; None where the path breaks."""
    for key in path:
        if isinstance(key, int):
            items = cast("list[Any]", value) if isinstance(value, list) else []
            value = items[key] if -len(items) <= key < len(items) else None
        else:
            value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value


def count(value: Any, *path: str | int) -> int | None:
    """A non-negative integer at `path`, or None."""
    found = field(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def credible_usage(usage: dict[str, Any]) -> dict[str, Any]:
    """A usage without counts that none can be, such as negative ones: a transcript takes none of them."""
    counted: dict[str, Any] = {name: count(usage, name) for name in _COUNTS if name in usage}
    cost = usage.get("cost_usd")
    if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0:
        counted["cost_usd"] = cost
    return {name: value for name, value in counted.items() if value is not None}


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [_scrubbed(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {scrub(key): _scrubbed(item) for key, item in cast("dict[str, Any]", value).items()}
    return value
