"""The world as an argument: time, ids, randomness and crash points (design: injected).

Production uses `real_world()`; tests and the simulation give clocks and ids that they control and a `reach` that
crashes at a chosen point.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

_AT_A_TIME = 256
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


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
    """Ids from the operating system's randomness, fetched for many ids at a time: a system call lets go of the
    interpreter, which costs more than the id. Threads may share one; a fork never repeats what its parent holds.
    """

    def __init__(self) -> None:
        self._ready: deque[str] = deque()
        os.register_at_fork(after_in_child=self._ready.clear)

    def hex(self) -> str:
        """32 random hex digits."""
        try:
            return self._ready.popleft()
        except IndexError:
            digits = os.urandom(16 * _AT_A_TIME).hex()
            self._ready.extend(digits[at : at + 32] for at in range(32, len(digits), 32))
            return digits[:32]

    def uuid(self) -> str:
        """A random UUID v4."""
        digits = self.hex()
        variant = _VARIANT[digits[16]]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


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
