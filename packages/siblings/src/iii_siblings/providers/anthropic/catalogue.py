"""The models that the API lists, as catalogue entries (siblings 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from iii_siblings.providers.anthropic.prices import Rates, pricing_of
from iii_siblings.providers.payload import count, field

DEFAULT_WINDOW = 200_000
DEFAULT_OUTPUT = 8_192
_WINDOWS = (("max_input_tokens",), ("context_window",), ("meta", "n_ctx"))
"""Where a server tells the window: the API itself, and compatible ones."""


def entries(provider: str, listing: Any, prices: Mapping[str, Rates]) -> list[dict[str, Any]]:
    """The catalogue entries of a list of models."""
    rows = field(listing, "data")
    listed = cast("list[Any]", rows) if isinstance(rows, list) else []
    found: dict[str, dict[str, Any]] = {}
    for row in listed:
        model = field(row, "id")
        if isinstance(model, str) and model and _usable(row):
            found[model] = _entry(provider, model, row, prices)
    return [found[model] for model in sorted(found)]


def _usable(row: Any) -> bool:
    """False for a model that thinks, but not in the way that requests ask for."""
    return _can(row, "thinking", "types", "adaptive") or not _can(row, "thinking")


def _entry(provider: str, model: str, row: Any, prices: Mapping[str, Rates]) -> dict[str, Any]:
    window = next((found for path in _WINDOWS if (found := count(row, *path))), DEFAULT_WINDOW)
    ceiling = count(row, "max_tokens") or min(DEFAULT_OUTPUT, max(1, window // 2))
    entry: dict[str, Any] = {
        "id": model,
        "provider": provider,
        "context_window": window,
        "max_output_tokens": min(ceiling, window),
        "supports_tools": True,
        "supports_cache": True,
        "supports_structured_output": False,
        "supports_vision": True,
    }
    if isinstance(field(row, "capabilities"), dict):
        entry |= {
            "supports_thinking": _can(row, "thinking", "types", "adaptive"),
            "supports_xhigh": _can(row, "effort", "xhigh"),
            "supports_vision": _can(row, "image_input"),
        }
    name, pricing = field(row, "display_name"), pricing_of(model, prices)
    if isinstance(name, str) and name:
        entry["display_name"] = name
    return entry if pricing is None else {**entry, "pricing": pricing}


def _can(row: Any, *path: str) -> bool:
    return field(row, "capabilities", *path, "supported") is True
