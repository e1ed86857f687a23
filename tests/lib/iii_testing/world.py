"""A world that tests control: a clock they advance, seeded ids and randomness, crash points that record or crash."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from iii_kit.world import Point, World
from iii_testing.waiting import settle

START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""


class Crash(BaseException):
    """What a chosen crash point raises: not an `Exception`, so that no handler takes it for an ordinary failure."""

    def __init__(self, point: Point) -> None:
        super().__init__(f"crashed at {point.name}")
        self.point = point


class ManualClock:
    """A clock that moves only when it is told to; sleeps wake in the order of their deadlines."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self._start_ms = start_ms
        self._elapsed = 0.0
        self._order = itertools.count()
        self._sleeping: list[tuple[float, int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return self._start_ms + int(self._elapsed * 1000 + 1e-6)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleeping, (self._elapsed + seconds, next(self._order), waiting))
        await waiting

    @property
    def sleepers(self) -> int:
        """Tasks that wait for this clock."""
        return sum(not waiting.done() for _, _, waiting in self._sleeping)

    @property
    def next_wake(self) -> float | None:
        """Seconds until the first sleeper wakes, or None."""
        while self._sleeping and self._sleeping[0][2].done():
            heapq.heappop(self._sleeping)
        return self._sleeping[0][0] - self._elapsed if self._sleeping else None

    def skip(self, seconds: float) -> None:
        """Move the clock without giving control away; what is due runs when the loop runs next."""
        self._elapsed += seconds
        while self._sleeping and self._sleeping[0][0] <= self._elapsed + 1e-9:
            waiting = heapq.heappop(self._sleeping)[2]
            if not waiting.done():
                waiting.set_result(None)

    async def advance(self, seconds: float) -> None:
        """Move through every deadline on the way, letting the woken tasks run before the clock goes on."""
        end = self._elapsed + seconds
        await settle()
        while (wake := self.next_wake) is not None and self._elapsed + wake <= end + 1e-9:
            self.skip(max(wake, 0.0))
            await settle()
        self.skip(max(end - self._elapsed, 0.0))
        await settle()


class SeededIds:
    """Ids from a seed: the same run gives the same ids."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def hex(self) -> str:
        return f"{self._source.getrandbits(128):032x}"

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._source.getrandbits(128), version=4))


class Reach:
    """Crash points: counts what was reached and crashes at the n-th visit that `crash_at` names."""

    def __init__(self) -> None:
        self.reached: Counter[Point] = Counter()
        self.log: list[Point] = []
        self._crash: tuple[Point | None, int] | None = None
        self.make: Callable[[Point], BaseException] = Crash

    def crash_at(self, nth: int, point: Point | None = None) -> None:
        """Crash at the `nth` visit from now (1 = the next) of `point`, or of any point."""
        self._crash = (point, nth)

    def calm(self) -> None:
        """Crash no more."""
        self._crash = None

    def __call__(self, point: Point) -> None:
        self.reached[point] += 1
        self.log.append(point)
        if self._crash is None or self._crash[0] not in (None, point):
            return
        wanted, left = self._crash
        if left > 1:
            self._crash = (wanted, left - 1)
            return
        self._crash = None
        raise self.make(point)


@dataclass(frozen=True, slots=True)
class ManualWorld(World):
    """A `World` whose parts a test can reach: `manual_clock.advance(seconds)`, `points.crash_at(n)`."""

    seed: int = field(default=0)

    @property
    def manual_clock(self) -> ManualClock:
        return cast("ManualClock", self.clock)

    @property
    def points(self) -> Reach:
        return cast("Reach", self.reach)

    async def advance(self, seconds: float) -> None:
        """Move the clock; see `ManualClock.advance`."""
        await self.manual_clock.advance(seconds)


def manual_world(start_ms: int = START_MS, seed: int = 0) -> ManualWorld:
    """A world at `start_ms` whose ids and randomness follow from `seed`."""
    return ManualWorld(
        ManualClock(start_ms), SeededIds(random.Random(f"ids-{seed}")), random.Random(f"random-{seed}"), Reach(), seed
    )
