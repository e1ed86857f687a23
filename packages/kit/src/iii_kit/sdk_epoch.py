"""Epochs: one connection of an `SdkBus` each (design, "One Bus, two wires"; engine spec 21.5, 21.12).

`iii-sdk` hides a broken connection: it queues what is sent meanwhile and sends it after the reconnect, even when its
caller has long given up. A durable worker must not do that: whoever takes over has read everything anew. So the work
of a connection ends with it: its tasks are cancelled and its later calls fail at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any

from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger

log = logger(__name__)


class Epoch:
    """The work of one connection. `ended` is set on the SDK's thread; tasks and calls live on the worker's loop."""

    __slots__ = ("_calls", "_tasks", "ended", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.ended = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._calls: set[asyncio.Future[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any], context: Context | None = None) -> None:
        """Run `work` as a task of this connection; a failure is logged."""
        if self.ended:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Let `task` end with this connection."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait(self, call: Coroutine[Any, Any, Any]) -> Any:
        """The result of `call`; raises `EpochEnded` as soon as the connection is gone."""
        if self.ended:
            call.close()
            raise EpochEnded
        answer = asyncio.ensure_future(call)
        self._calls.add(answer)
        try:
            return await answer
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.ended and (task is None or not task.cancelling()):
                raise EpochEnded from None
            raise
        finally:
            self._calls.discard(answer)

    def cancel(self) -> None:
        """On the worker's loop: end everything that belongs to this connection."""
        for waiting in (*self._tasks, *self._calls):
            waiting.cancel()

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not (self.ended and isinstance(error, EpochEnded)):
            log.error("epoch_task_failed", exc_info=error)


class Epochs:
    """The current connection of a bus and what begins and ends with it.

    `turned` is the SDK's state listener and runs on its thread; everything else runs on the worker's loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, forget: Callable[[], None]) -> None:
        self._loop = loop
        self._forget = forget
        self._lock = threading.Lock()
        self._number = 0
        self._state = "disconnected"
        self.current: Epoch | None = None
        self.mine: ContextVar[Epoch | None] = ContextVar("epoch", default=None)
        self.on_begin: Callable[[Epoch], None] = lambda _: None
        self.on_turn: Callable[[str], None] = lambda _: None

    def turned(self, state: str) -> None:
        """The SDK's connection state is now `state`; the same state may be told twice."""
        with self._lock:
            if state == self._state:
                return
            self._state = state
            ended, self.current = self.current, None
            if ended is not None:
                ended.ended = True
                self._hand_over(ended.cancel)
            if state == "connected":
                self._forget()
                self._number += 1
                self.current = Epoch(self._number)
                self._hand_over(self.on_begin, self.current)
            self._hand_over(self.on_turn, state)

    def require(self) -> Epoch:
        """The epoch of the calling work. Raises `EpochEnded` when it is over, `not_connected` when there is none."""
        mine = self.mine.get()
        if mine is not None:
            if mine.ended:
                raise EpochEnded
            return mine
        current = self.current
        if current is None:
            raise BusError("not_connected", "not connected to the engine")
        return current

    def _hand_over(self, run: Callable[..., None], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(run, *args)
