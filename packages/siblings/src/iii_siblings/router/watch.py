"""One timer for all running streams: who is silent too long, or takes too long as a whole (siblings 5.6)."""

from __future__ import annotations

import asyncio
from typing import Protocol

from iii_kit.world import Clock


class Watched(Protocol):
    """A stream with deadlines."""

    def check(self, now: float) -> float:
        """Seconds until it has to be looked at again; it interrupts itself when a deadline has passed."""
        ...


class StreamWatch:
    """Looks at every stream when the first of them is due; once it finds none, it sleeps no more."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streams: set[Watched] = set()
        self._task: asyncio.Task[None] | None = None
        self._due = 0.0

    def add(self, stream: Watched) -> None:
        """Watch a stream that begins."""
        self._streams.add(stream)
        now = self._clock.monotonic()
        if self._task is None or now + stream.check(now) < self._due:
            self.close()
            self._task = asyncio.create_task(self._run())

    def discard(self, stream: Watched) -> None:
        """Forget a stream that has ended."""
        self._streams.discard(stream)

    def close(self) -> None:
        """Stop looking, until the next stream begins."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while self._streams:
            now = self._clock.monotonic()
            left = min(stream.check(now) for stream in list(self._streams))
            self._due = now + left
            await self._clock.sleep(left)
        self._task = None
