"""Counts of a usage as the API tells them (siblings 5.7, 8)."""

from __future__ import annotations


def usage_counts(prompt: int | None, cached: int | None, output: int | None, reasoning: int | None) -> dict[str, int]:
    """Counts of a usage: input without the cached tokens, what is not reported absent."""
    fresh = None if prompt is None else max(0, prompt - (cached or 0))
    counts = {"input": fresh, "output": output, "cache_read": cached, "reasoning": reasoning}
    return {name: value for name, value in counts.items() if value is not None}
