"""The final arguments of a call (siblings 5.5): its raw text is never lost and never becomes `{}`."""

from __future__ import annotations

from typing import Any

from iii_kit.stream_frames import shown_arguments
from iii_siblings.providers.payload import parsed


def final_arguments(text: str, *, cut_by_length: bool) -> Any:
    """The value of an argument text; no text at all is a call without arguments."""
    if not text.strip():
        return {"_raw": text} if cut_by_length else {}
    try:
        return parsed(text)
    except (ValueError, RecursionError):
        return shown_arguments(text) if cut_by_length else {"_raw": text}


def usage_counts(prompt: int | None, cached: int | None, output: int | None, reasoning: int | None) -> dict[str, int]:
    """Counts of a usage: input without the cached tokens, what is not reported absent."""
    fresh = None if prompt is None else max(0, prompt - (cached or 0))
    counts = {"input": fresh, "output": output, "cache_read": cached, "reasoning": reasoning}
    return {name: value for name, value in counts.items() if value is not None}
