"""The workers that the harness cannot do without, and which of them are away (harness-loop 1, 1.1).

Order of start does not matter: what is not there yet is waited for, by name, and so is what went away. The engine tells
when functions come and go; while something is missing the registry is also asked once a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from iii_harness.catalog import LIST
from iii_kit.bus import Caller
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger
from iii_kit.world import Clock

log = logger(__name__)

ASK_S: Final = 1.0
"""Pause between two looks while something is missing."""


@dataclass(frozen=True, slots=True)
class Need:
    """One worker, known by a function that only it serves."""

    worker: str
    function_id: str

    def __str__(self) -> str:
        return f"{self.worker} ({self.function_id})"


QUEUE: Final = Need("queue", "queue::define")

NEEDS: Final = (
    Need("configuration", "configuration::get"),
    Need("state", "state::get"),
    QUEUE,
    Need("session-manager", "session::append"),
    Need("llm-router", "router::chat"),
)
"""In the order in which they are named."""


class Needs:
    """Knows what is missing."""

    def __init__(self, bus: Caller, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._changed = asyncio.Event()
        self.missing: tuple[Need, ...] = ()

    def look(self) -> None:
        """Something may have come or gone."""
        self._changed.set()

    async def met(self) -> None:
        """Return once nothing is missing; says what it waits for, once for each that is missing."""
        while await self._read():
            await self._pause()

    async def watch(self, returned: Callable[[frozenset[Need]], Awaitable[None]]) -> None:
        """As long as the connection lasts: wait for what goes away, and tell `returned` what is back."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            away = frozenset(await self._read())
            while self.missing:
                await self._pause()
                away |= frozenset(await self._read())
            if away:
                await returned(away)

    async def _read(self) -> tuple[Need, ...]:
        before = self.missing
        try:
            listed = await self._bus.call(LIST, {"include_internal": True})
        except EpochEnded:
            raise
        except BusError as error:
            log.warning("registry_unreadable", error=str(error))
            return before
        ids = {row["function_id"] for row in listed["functions"]}
        self.missing = tuple(need for need in NEEDS if need.function_id not in ids)
        if self.missing and self.missing != before:
            log.warning("waiting", waits_for=_named(self.missing))
        elif before and not self.missing:
            log.warning("found", waited_for=_named(before))
        return self.missing

    async def _pause(self) -> None:
        """Until something changes, for at most a moment."""
        changed = asyncio.ensure_future(self._changed.wait())
        moment = asyncio.ensure_future(self._clock.sleep(ASK_S))
        try:
            await asyncio.wait({changed, moment}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            moment.cancel()
        self._changed.clear()


def _named(needs: Iterable[Any]) -> str:
    return ", ".join(str(need) for need in needs)
