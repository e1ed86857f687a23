"""A step outlives the absence of a worker that it needs (harness-loop 6.1, 6.5; "Ours": it waits instead of failing).

Where a needed function is not registered, the call did not run, so it is made again as soon as the function is back. A
sequence is repeatable whatever became of its calls, so it goes on from the call that was cut off. Only steps wait:
whoever calls the harness is answered at once. Targets of a model's calls never come through here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from iii_contracts.harness.turn import TurnRequest
from iii_kit.bus import Call, Caller, Channel, Fn, Invocation, Json, Opts, Sink
from iii_kit.errors import BusError, EpochEnded, PartialSequence
from iii_kit.logs import logger
from iii_kit.world import Clock

T = TypeVar("T")

log = logger(__name__)

FAMILIES: Final = ("session::", "state::", "router::chat")
"""Functions that a step waits for."""

REPEATABLE: Final = ("session::", "state::")
"""Functions that may be called again when the worker died while it ran them: reads, and writes with their own ids."""

NO_QUEUE: Final = ("No queue provider", "function_not_found", "invocation_stopped", "is not defined", "queue_not_found")
"""What the engine says when its queue is away, was just killed, or is back without the definition, which follows."""

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 1.0

_in_step: ContextVar[bool] = ContextVar("in_step", default=False)


class PatientCaller:
    """A `Caller` whose calls wait inside a step while what they need is away; `away` hears of each such call."""

    def __init__(self, bus: Caller, clock: Clock, away: Callable[[], None]) -> None:
        self._bus = bus
        self._clock = clock
        self._away = away
        self._over = asyncio.Event()

    def stop(self) -> None:
        """Wait no more: the worker ends, and what waits is delivered again at its next start."""
        self._over.set()

    def in_step(
        self, run: Callable[[TurnRequest, Invocation], Awaitable[T]]
    ) -> Callable[[TurnRequest, Invocation], Awaitable[T]]:
        """`run`, whose calls are those of a step."""

        async def step(request: TurnRequest, invocation: Invocation) -> T:
            entered = _in_step.set(True)
            try:
                return await run(request, invocation)
            finally:
                _in_step.reset(entered)

        return step

    async def call(self, fn: Fn, data: Json, *, opts: Opts = Opts()) -> Json:
        """Call and wait for the result."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                return await self._bus.call(fn, data, opts=opts)
            except BusError as error:
                if not _worth_waiting(fn, error):
                    raise
            pause = await self._wait(fn, pause)

    async def void(self, fn: Fn, data: Json, *, opts: Opts = Opts()) -> None:
        """Send and forget."""
        await self._bus.void(fn, data, opts=opts)

    async def enqueue(self, queue: str, fn: Fn, data: Json) -> str:
        """Hand a call to a queue."""
        return (await self.sequence([Call(fn, data, kind="enqueue", queue=queue)]))[0]

    async def sequence(self, calls: Sequence[Call]) -> list[Json]:
        """Make several calls in order."""
        try:
            return await self._bus.sequence(calls)
        except PartialSequence as partial:
            return await self._go_on(calls, partial)

    async def channel(self, buffer: int = 64) -> Channel:
        """Make a channel and take its read end."""
        return await self._bus.channel(buffer)

    async def sink(self, ref: Json) -> Sink:
        """Take the write end that a payload carried."""
        return await self._bus.sink(ref)

    async def _go_on(self, calls: Sequence[Call], partial: PartialSequence) -> list[Json]:
        """The rest of a sequence, from the call that failed; raises when that is nothing to wait for."""
        done: list[Any] = []
        pause = FIRST_PAUSE_S
        while True:
            done.extend(partial.done)
            failed = calls[len(done)]
            if not _worth_repeating(failed, partial.cause):
                raise PartialSequence(done, partial.cause) from partial.cause
            pause = await self._wait(failed.fn, FIRST_PAUSE_S if partial.done else pause)
            try:
                return [*done, *await self._bus.sequence(calls[len(done) :])]
            except PartialSequence as again:
                partial = again

    async def _wait(self, fn: Fn, pause: float) -> float:
        """Wait a moment before the next try; the pause after that."""
        log.info("step_waits", function=fn)
        self._away()
        moment = asyncio.ensure_future(self._clock.sleep(pause))
        over = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({moment, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            moment.cancel()
            over.cancel()
        if self._over.is_set():
            raise EpochEnded
        return min(LONGEST_PAUSE_S, pause * 2)


def _worth_waiting(fn: Fn, error: BusError) -> bool:
    """True in a step for a call that did not run since nobody serves the function now, or may run twice."""
    if not _in_step.get() or not fn.startswith(FAMILIES):
        return False
    if error.code == "function_not_found":
        return True
    return error.code == "invocation_stopped" and fn.startswith(REPEATABLE)


def _worth_repeating(call: Call, error: BusError) -> bool:
    if call.kind != "enqueue":
        return _worth_waiting(call.fn, error)
    # A step that is enqueued twice runs once.
    return _in_step.get() and error.code == "enqueue_error" and any(error.matches(sign) for sign in NO_QUEUE)
