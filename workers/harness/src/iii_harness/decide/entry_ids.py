"""Ids of the transcript entries that the loop owns (harness-loop 12.1).

They are functions of turn, step and call, so that a repeated append changes nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")

_RESERVED = re.compile(
    r"error|stopped|max_turns|nudge_\d+|resume_\d+|recovery_\d+_[a-z]+"
    r"|\d+_(assistant|compaction|order|runtime_context|notice_\d+)"
)


@lru_cache(8192)
def safe(part: str) -> str:
    """A part supplied by a caller or a provider, with every other character as `_`."""
    return _UNSAFE.sub("_", part)


def reserved(call_id: str) -> bool:
    """True for a call id whose result would take the id of another entry of the turn."""
    return not call_id or _RESERVED.fullmatch(safe(call_id)) is not None


@lru_cache(1024)
def assistant(turn_id: str, step: int) -> str:
    """The reply of one step."""
    return f"e_{safe(turn_id)}_{step}_assistant"


def result(turn_id: str, call_id: str) -> str:
    """The result of one call."""
    return f"e_{safe(turn_id)}_{safe(call_id)}"


def resume_nudge(turn_id: str, n: int) -> str:
    """The user message that asks the model to go on after a broken stream."""
    return f"e_{safe(turn_id)}_resume_{n}"


def recovery(turn_id: str, n: int, status: str) -> str:
    """The record of a recovery attempt."""
    return f"e_{safe(turn_id)}_recovery_{n}_{status}"


def error(turn_id: str) -> str:
    """The record of a failed turn."""
    return f"e_{safe(turn_id)}_error"


def stopped(turn_id: str) -> str:
    """The notice of a cancelled turn."""
    return f"e_{safe(turn_id)}_stopped"


def max_turns(turn_id: str) -> str:
    """The notice of a turn that reached its limit."""
    return f"e_{safe(turn_id)}_max_turns"


def notice(turn_id: str, step: int, index: int) -> str:
    """A notice told to the model in one step."""
    return f"e_{safe(turn_id)}_{step}_notice_{index}"


def order(turn_id: str, step: int) -> str:
    """A move of user messages behind a reply and its results."""
    return f"e_{safe(turn_id)}_{step}_order"


def runtime_context(turn_id: str, step: int) -> str:
    """The frozen runtime context."""
    return f"e_{safe(turn_id)}_{step}_runtime_context"


def compaction(turn_id: str, step: int) -> str:
    """The record of a compaction."""
    return f"e_{safe(turn_id)}_{step}_compaction"
