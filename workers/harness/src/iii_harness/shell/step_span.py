"""What the span of a step says of a failed or resumed turn (harness-loop 17); nothing where nobody records spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from opentelemetry import trace

from iii_harness.decide.decision import Append, Write
from iii_harness.record import TurnRecord


def mark_failure(record: TurnRecord, writes: Sequence[Write]) -> None:
    """Tell the current span what the turn's `error` entry says."""
    span = trace.get_current_span()
    if record.status != "failed" or not span.is_recording():
        return
    told = _data(writes, "error")
    if told is None:
        return
    span.set_attributes(
        {
            "error.type": told["code"],
            "error.message": told["detail"],
            "iii.turn.failure_phase": told["phase"],
            "iii.turn.retryable": told["retryable"],
            "iii.turn.partial_result_available": told["partial_result_available"],
            "iii.turn.transient_resumes": record.transient_resumes,
            "iii.turn.max_transient_resumes": record.options.max_transient_resumes,
        }
    )


def mark_recovery(record: TurnRecord, writes: Sequence[Write]) -> None:
    """Tell the current span of a generation that broke and is resumed."""
    if record.transient_resumes == 0:
        return
    span = trace.get_current_span()
    told = _data(writes, "recovery") if span.is_recording() else None
    if told is None or told["status"] != "recovering":
        return
    span.set_attributes(
        {
            "iii.turn.recovery_attempt": told["attempt"],
            "iii.turn.recovery_max": told["max_attempts"],
            "iii.turn.partial_result_available": told["partial_result_available"],
        }
    )
    event = {"attempt": told["attempt"], "max_attempts": told["max_attempts"], "reason": told["reason"]}
    span.add_event("harness.turn.recovery", event)


def _data(writes: Sequence[Write], custom_type: str) -> dict[str, Any] | None:
    entry = next((write for write in writes if isinstance(write, Append) and write.custom_type == custom_type), None)
    return None if entry is None else cast("dict[str, Any]", entry.data)
