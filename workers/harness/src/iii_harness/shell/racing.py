"""Waiting for something that a stop may cut short (harness-loop 11.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from iii_harness.signals import CancelSignals

T = TypeVar("T")


async def unless_stopped(signals: CancelSignals, turn_id: str, work: asyncio.Task[T]) -> bool:
    """Wait for `work`; False when the turn was told to stop first. The work itself goes on."""
    if signals.fired(turn_id):
        return False
    stop = asyncio.ensure_future(signals.wait(turn_id))
    try:
        await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        work.cancel()
        raise
    finally:
        stop.cancel()
    return work.done()


class Background:
    """Tasks that outlive the step that began them; kept referenced until they end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Hold on to a running task."""
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run `work` beside everything else."""
        self.keep(asyncio.ensure_future(work))

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()
