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
_VERSION = bytes(0x40 | octet & 0x0F for octet in range(256))
_VARIANT = bytes(0x80 | octet & 0x3F for octet in range(256))


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
    """Ids from the operating system's randomness, made many at a time: a system call lets go of the interpreter, which
    costs more than the id. Threads may share one; a fork never repeats what its parent holds.
    """

    def __init__(self) -> None:
        self._hex: deque[str] = deque()
        self._uuids: deque[str] = deque()
        os.register_at_fork(after_in_child=self._forget)

    def hex(self) -> str:
        """32 random hex digits."""
        try:
            return self._hex.popleft()
        except IndexError:
            self._hex.extend(os.urandom(16 * _AT_A_TIME).hex(" ", 16).split())
            return self.hex()

    def uuid(self) -> str:
        """A random UUID v4."""
        try:
            return self._uuids.popleft()
        except IndexError:
            octets = bytearray(os.urandom(16 * _AT_A_TIME))
            octets[6::16] = octets[6::16].translate(_VERSION)
            octets[8::16] = octets[8::16].translate(_VARIANT)
            self._uuids.extend(f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}" for h in octets.hex(" ", 16).split())
            return self.uuid()

    def _forget(self) -> None:
        self._hex.clear()
        self._uuids.clear()


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
