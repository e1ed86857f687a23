"""Cost of a generation from the rates of its model (siblings 5.7). Unknown stays absent."""

from __future__ import annotations

from typing import Any

_COUNTS = ("input", "output", "cache_read", "cache_write")


def with_cost(usage: dict[str, Any] | None, pricing: dict[str, Any] | None) -> dict[str, Any] | None:
    """`usage` with its cost, or None when nothing is to be added: a cost is given, or no count has a rate."""
    if not usage or not pricing or usage.get("cost_usd") is not None:
        return None
    cost, priced = 0.0, False
    for name in _COUNTS:
        tokens, rate = usage.get(name), pricing.get(name)
        if tokens is not None and rate is not None:
            cost += tokens * rate / 1_000_000
            priced = True
    return {**usage, "cost_usd": cost} if priced else None
