"""The crash points of the queue provider: around every durable write and every send."""

from __future__ import annotations

from enum import auto

from iii_kit.world import Point


class QueuePoint(Point):
    """Where a process may end between two effects of the queue."""

    ENQUEUE = auto()
    """A job is about to be written."""
    CLAIM = auto()
    """A job is about to be marked as running."""
    DELIVER = auto()
    """A job is marked, its function is about to be called."""
    SETTLE = auto()
    """The function has answered, nothing of it is written."""
    SETTLED = auto()
    """What became of the delivery is handed to the writer."""
