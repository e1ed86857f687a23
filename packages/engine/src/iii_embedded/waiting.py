"""The calls of one worker of this process that wait for their answers, with their times (engine spec 21.5).

Calls that wait equally long run out in the order they were made, so one timer per duration does for all of them: a call
costs an entry in a table, not a timer of its own.
"""

from __future__ import annotations

import asyncio
from typing import Any

from iii_embedded.calls import Failure

Answered = asyncio.Future[Any]


class Waiting:
    """Futures of outcomes by how long they wait."""

    def __init__(self) -> None:
        self._by_time: dict[int, dict[Answered, float]] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_time.values()))

    def queue(self, loop: asyncio.AbstractEventLoop, timeout_ms: int) -> dict[Answered, float]:
        """Where futures that wait so long stand, each with its deadline: put in last, taken out by who waits.

        A future that is still there at its deadline is settled with a `TIMEOUT`.
        """
        queue = self._by_time.get(timeout_ms)
        if queue is None:
            queue = self._by_time[timeout_ms] = {}
        if timeout_ms not in self._timers:
            self._timers[timeout_ms] = loop.call_later(timeout_ms / 1000, self._expire, loop, timeout_ms)
        return queue

    def end(self, failure: Failure) -> None:
        """Settle everything with a failure."""
        for queue in self._by_time.values():
            for future in queue:
                _settle(future, failure)
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _expire(self, loop: asyncio.AbstractEventLoop, timeout_ms: int) -> None:
        now = loop.time()
        del self._timers[timeout_ms]
        for future, deadline in self._by_time[timeout_ms].items():
            if deadline > now:
                self._timers[timeout_ms] = loop.call_at(deadline, self._expire, loop, timeout_ms)
                return
            _settle(future, Failure("TIMEOUT", f"invocation timed out after {timeout_ms}ms"))


def _settle(future: Answered, failure: Failure) -> None:
    if not future.done():
        future.set_result(failure)
