"""Crash points of the entry: around every durable write and send made outside a step."""

from __future__ import annotations

from enum import auto

from iii_kit.world import Point


class EntryPoint(Point):
    """Each is reached in the order of the work it stands beside."""

    SESSION_CREATED = auto()
    """`session::create` has answered; nothing is delivered yet."""
    BEFORE_SEED = auto()
    AFTER_SEED = auto()
    """Message, record and queue entry of a new turn are stored."""
    BEFORE_PARK = auto()
    AFTER_PARK = auto()
    BEFORE_MERGE = auto()
    AFTER_MERGE = auto()
    """The message of a turn that waits for calls is in the transcript."""
    BEFORE_DRAIN = auto()
    AFTER_DRAIN = auto()
    BEFORE_RESEED = auto()
    AFTER_RESEED = auto()
    """The turn that answers what was parked at the end of another is stored; its rows are not deleted yet."""
    BEFORE_ABORT = auto()
    AFTER_ABORT = auto()
    """A stop is durable."""
    BEFORE_REDRIVE = auto()
    AFTER_REDRIVE = auto()
