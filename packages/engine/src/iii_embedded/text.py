"""Names and descriptions of workers, fit to be shown (engine spec 2.4)."""

from __future__ import annotations

import unicodedata

LIMIT = 280
"""Characters that are kept."""

_UNWANTED = frozenset(chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C))
_SEPARATORS = frozenset("\u2028\u2029")


def one_line(text: str | None) -> str | None:
    """`text` without control, bidirectional and separator characters, cut and trimmed; None when nothing is left."""
    if text is None:
        return None
    kept = "".join(char for char in text if not _is_unwanted(char))
    return kept[:LIMIT].strip() or None


def _is_unwanted(char: str) -> bool:
    return char in _UNWANTED or char in _SEPARATORS or unicodedata.category(char) == "Cc"
