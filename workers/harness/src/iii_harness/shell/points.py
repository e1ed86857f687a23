"""Crash points of the loop: around every durable write and every send of a step. A test reaches each."""

from __future__ import annotations

from enum import auto

from iii_kit.world import Point


class LoopPoint(Point):
    """In the order of a step with one call."""

    STEP_TAKEN = auto()
    """The delivery is the record's own step; nothing was written yet."""
    BEFORE_ASK = auto()
    AFTER_ASK = auto()
    """Placeholder and record with the request id are durable; the model was not asked yet."""
    STREAMED = auto()
    """The generation has ended; nothing of its end is stored."""
    BEFORE_REPLY = auto()
    AFTER_REPLY = auto()
    """The reply is durable, its first call `triggered`; no target was invoked."""
    BEFORE_INVOKE = auto()
    INVOKED = auto()
    """The target has answered; its result is in memory only."""
    BEFORE_RESULT = auto()
    AFTER_RESULT = auto()
    """The result is durable, and with it the next call's `triggered` or the next step and its queue entry."""
    BEFORE_END = auto()
    AFTER_END = auto()
    """The terminal record is durable and not told yet."""
    TOLD = auto()
    """`turn-completed` is sent; parked messages are not settled."""
    SETTLED = auto()
