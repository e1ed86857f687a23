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
