"""What kind of failure a call met, decided by substring as every client must (siblings 1.2)."""

from __future__ import annotations

from enum import Enum

from iii_kit.errors import BusError, EpochEnded


class Failure(Enum):
    """What a caller can do about a failed call."""

    ABSENT = "absent"
    """Nobody serves the function now; it did not run."""

    INTERRUPTED = "interrupted"
    """The serving worker, or our own connection, went away during the call: it may have run."""

    TIMED_OUT = "timed_out"
    """No answer in time: it may have run, or may run later."""

    QUEUE = "queue"
    """The queue's provider is missing or refused the job."""

    REFUSED = "refused"
    """The callee answered with an error of its own; the same call will fail again."""


def classify(error: BusError) -> Failure:
    """The kind of `error`, from its wire code or, where a sibling hides its code in the text, from the text."""
    if isinstance(error, EpochEnded):
        return Failure.INTERRUPTED
    for code, failure in _BY_CODE:
        if error.matches(code):
            return failure
    return Failure.REFUSED


def is_transient(error: BusError) -> bool:
    """True when the same call may succeed a moment later."""
    return classify(error) in _TRANSIENT


_BY_CODE = (
    ("enqueue_error", Failure.QUEUE),
    ("function_not_found", Failure.ABSENT),
    ("invocation_stopped", Failure.INTERRUPTED),
    ("TIMEOUT", Failure.TIMED_OUT),
)

_TRANSIENT = frozenset({Failure.ABSENT, Failure.INTERRUPTED, Failure.TIMED_OUT, Failure.QUEUE})
