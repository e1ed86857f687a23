"""Waiting for something that a stop may cut short (harness-loop 11.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from iii_harness.signals import CancelSignals

T = TypeVar("T")


async def unless_stopped(signals: CancelSignals, turn_id: str, work: asyncio.Task[T]) -> bool:
    """Wait for `work`; False when the turn was told to stop first. The work itself goes on."""
    if work.done() or signals.fired(turn_id):
        return work.done()
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(_: object = None) -> None:
        if not woken.done():
            woken.set_result(None)

    leave = signals.watch(turn_id, wake)
    work.add_done_callback(wake)
    try:
        await woken
    except asyncio.CancelledError:
        work.cancel()
        raise
    finally:
        leave()
        work.remove_done_callback(wake)
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
