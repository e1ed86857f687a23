"""Configuration entry `session-manager`: the limits of the store, read at start and on change (siblings 3.11, 10)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from iii_contracts.session import INVALID_REQUEST
from iii_contracts.spec import FunctionSpec
from iii_kit.bus import Bus, Invocation, Json
from iii_kit.clients.configuration import ConfigurationClient, Entry
from iii_kit.errors import BusError
from iii_kit.logs import logger
from iii_kit.world import World
from iii_siblings.sessions.parts import DEFAULT_PAGE, MAX_ATTACHMENT_BYTES, MAX_PAGE, Limits

ENTRY_ID = "session-manager"
RETRY_S = 5.0

_log = logger(__name__)

ON_CHANGE = FunctionSpec(
    "session::on-config-change",
    "Read the limits of the session store again.",
    None,
    None,
    INVALID_REQUEST,
    metadata={"embedded": True, "internal": True},
)


class Stored(msgspec.Struct, frozen=True):
    """The entry; keys that this store does not use, such as `adapter`, are ignored."""

    default_list_limit: int = DEFAULT_PAGE
    max_list_limit: int = MAX_PAGE
    max_attachment_bytes: int = MAX_ATTACHMENT_BYTES


def _count(says: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "description": says}


ENTRY = Entry(
    ENTRY_ID,
    "Session store",
    "Limits of the session store.",
    {
        "type": "object",
        "properties": {
            "default_list_limit": _count("Items in a page when the request names no limit."),
            "max_list_limit": _count("Items in a page at most."),
            "max_attachment_bytes": _count("Size of an attachment at most."),
        },
    },
    msgspec.to_builtins(Stored()),
)


class Settings:
    """Keeps `limits` equal to the entry; an unreadable value keeps what was in force."""

    def __init__(self, bus: Bus, world: World, limits: Limits) -> None:
        self._bus = bus
        self._clock = world.clock
        self._limits = limits
        self._client = ConfigurationClient(bus, world.clock)
        self.was_read = asyncio.Event()

    def follow(self) -> None:
        """Hear of changes, and read the entry at the start of every connection."""
        self._bus.serve(ON_CHANGE, self._on_change)
        self._bus.bind("configuration", ON_CHANGE.id, {"configuration_id": ENTRY_ID})
        self._bus.each_epoch(self._read_first)

    async def _read_first(self) -> None:
        while True:
            try:
                self._apply(await self._client.seed(ENTRY))
                self.was_read.set()
                return
            except BusError as error:
                _log.warning("settings_unreadable", entry=ENTRY_ID, error=str(error))
            await self._clock.sleep(RETRY_S)

    async def _on_change(self, _: Json, __: Invocation) -> Json:
        self._apply(await self._client.get(ENTRY_ID))
        return None

    def _apply(self, value: Json) -> None:
        try:
            stored = msgspec.convert({} if value is None else value, Stored)
        except msgspec.ValidationError as error:
            _log.warning("settings_invalid", entry=ENTRY_ID, error=str(error))
            return
        self._limits.page = min(stored.default_list_limit, stored.max_list_limit)
        self._limits.max_page = stored.max_list_limit
        self._limits.attachment_bytes = stored.max_attachment_bytes
