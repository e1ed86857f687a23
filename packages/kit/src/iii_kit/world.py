"""The world as an argument: time, ids, randomness and crash points (design: injected).

Production uses `real_world()`; tests and the simulation give clocks and ids that they control and a `reach` that
crashes at a chosen point.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Point(Enum):
    """Base of the named crash points; each package lists its own in an enum derived from this one."""


class Clock(Protocol):
    """Wall clock in epoch milliseconds, and a monotonic clock with its sleep in seconds."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of the monotonic clock."""
        ...


class Ids(Protocol):
    """Sources of fresh identifiers."""

    def hex(self) -> str:
        """32 random hex digits."""
        ...

    def uuid(self) -> str:
        """A lower-case hyphenated UUID v4."""
        ...


class SystemClock:
    """The clocks of this machine, with the sleep of the running event loop."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds of the machine's monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running loop."""
        await asyncio.sleep(seconds)


class RandomIds:
    """Ids from the operating system's randomness."""

    def hex(self) -> str:
        """32 random hex digits."""
        return uuid.uuid4().hex

    def uuid(self) -> str:
        """A random UUID v4."""
        return str(uuid.uuid4())


def pass_by(_: Point) -> None:
    """Reach a crash point and go on: what production does at every one."""


@dataclass(frozen=True, slots=True)
class World:
    """Everything that makes two runs differ."""

    clock: Clock
    ids: Ids
    random: random.Random
    reach: Callable[[Point], None]


def real_world() -> World:
    """The world of production: system clock, random ids, no crash points."""
    return World(SystemClock(), RandomIds(), random.Random(), pass_by)
