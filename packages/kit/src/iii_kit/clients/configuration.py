"""`configuration::*` with the seeding pattern of siblings 10: an operator's value is never overwritten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iii_kit.bus import Caller, Json
from iii_kit.clients.engine import routed
from iii_kit.errors import BusError
from iii_kit.world import Clock

ATTEMPTS = 3
TIMEOUT_MS = 5_000
PAUSE_S = 0.25


@dataclass(frozen=True, slots=True)
class Entry:
    """A configuration entry as its owner registers it."""

    id: str
    name: str
    description: str
    schema: dict[str, Any]
    initial: dict[str, Any]


class ConfigurationClient:
    """Seeds and reads configuration entries."""

    def __init__(self, bus: Caller, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock

    async def seed(self, entry: Entry) -> Json:
        """Register `entry`, seed it when it holds nothing, and return the value in force.

        Every call is tried three times; the last failure is raised.
        """
        described = {"id": entry.id, "name": entry.name, "description": entry.description, "schema": entry.schema}
        try:
            await self._call("configuration::ensure", {**described, "initial_value": entry.initial})
        except BusError as error:
            if not error.matches("function_not_found"):
                raise
            await self._call("configuration::register", described)
            if await self.get(entry.id) is None:
                await self.set(entry.id, entry.initial)
        return await self.get(entry.id)

    async def get(self, entry_id: str) -> Json:
        """The value in force, references to the environment expanded; None when none is stored."""
        answer = await self._call("configuration::get", {"id": entry_id})
        return answer["value"] if answer else None

    async def set(self, entry_id: str, value: Json) -> None:
        """Replace the value; the engine validates it against the entry's schema."""
        await self._call("configuration::set", {"id": entry_id, "value": value})

    async def _call(self, fn: str, data: dict[str, Any]) -> Json:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._bus.call(fn, data, opts=routed(None, TIMEOUT_MS))
            except BusError as error:
                final = attempt == ATTEMPTS or (fn == "configuration::ensure" and error.code == "function_not_found")
                if final:
                    raise
            await self._clock.sleep(PAUSE_S * attempt)
        raise AssertionError("unreachable: the last attempt returns or raises")
