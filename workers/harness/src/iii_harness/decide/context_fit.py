"""What the context manager's answer means for the request (harness-loop 12.3 to 12.5, 12.8). Pure.

Whatever is put behind the assembled messages (notices, results of orphaned calls) may overflow a context that is
exactly full: then it is measured, and assembled once more with that much more room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from iii_contracts import context
from iii_contracts.context import AssembleAnswer
from iii_contracts.problems import is_object
from iii_harness.decide.window import Entry, with_results
from iii_harness.ports import Message

MARGIN: Final = 256
"""Tokens of room, beyond what was missing, that the second assembly leaves."""


class Fit(msgspec.Struct, frozen=True):
    """One assembled context and the messages that it makes."""

    answer: AssembleAnswer
    messages: list[Message]
    overhead: int
    """What was set aside for the request around it."""
    changed: bool
    """Something was put behind or into the assembled messages, so that their count is no longer the answer's."""


def fit(answer: AssembleAnswer, told: Sequence[Message], overhead: int) -> Fit:
    """The messages to send: the assembled ones with every call answered, then what is told in this step."""
    assembled = cast("list[Message]", answer.messages)
    repaired = with_results(assembled)
    return Fit(answer, [*repaired, *told], overhead, changed=bool(told) or len(repaired) != len(assembled))


def size(made: Fit, base: int, counted: int | None) -> int:
    """Tokens of the whole request: `counted` ones and the request around them, else as the answer has it."""
    return made.answer.token_count - (made.overhead - base) if counted is None else counted + base


def roomier(made: Fit, base: int, final: int) -> int:
    """The overhead that the second assembly sets aside when `final` tokens are too many."""
    return base + max(0, final - made.answer.token_count) + MARGIN


def broken(answer: AssembleAnswer, window: int) -> str | None:
    """What makes an answer unusable for a window of that many messages, or None."""
    if not all(is_object(message) for message in cast("list[Any]", answer.messages)):
        return "`messages` holds something that is no message"
    start = answer.applied.tail_start_index
    if start is not None and start >= window:
        return f"`applied.tail_start_index` is {start}, the request had {window} messages"
    return None


def overflow(answer: AssembleAnswer) -> str | None:
    """Why an answer does not fit the model, or None."""
    if not answer.messages:
        return "no message is left after compaction"
    return too_large(answer.token_count, answer)


def too_large(tokens: int, answer: AssembleAnswer) -> str | None:
    """Why that many tokens do not fit, or None."""
    return f"{tokens} tokens are more than the {answer.usable} usable ones" if tokens > answer.usable else None


def is_overflow(error_text: str) -> bool:
    """True for the error by which a context manager says that nothing made the context fit."""
    return f"{context.OVERFLOW}:" in error_text


def compaction(answer: AssembleAnswer, entries: Sequence[Entry]) -> dict[str, Any] | None:
    """The record of a compaction (12.4), with the first entry that it kept; None when nothing was summarised."""
    applied = answer.applied
    if not applied.compacted or not applied.summary:
        return None
    start = applied.tail_start_index
    return {
        "summary": applied.summary,
        "tail_start_entry_id": None if start is None else entries[start].entry_id,
        "tokens_before": applied.tokens_before,
        "summarized_head_tokens": applied.summarized_head_tokens,
        "initial_token_count": applied.initial_token_count,
        "assembled_token_count": answer.token_count,
        "usable_input_tokens": answer.usable,
        "effective_max_output_tokens": answer.effective_max_output_tokens,
    }
