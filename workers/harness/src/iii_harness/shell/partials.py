"""The reply while it streams: read from the channel, stored now and then (harness-loop 7.3, coalescing)."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from iii_harness.record import TurnRecord
from iii_harness.shell.parts import Parts
from iii_kit.bus import Source
from iii_kit.errors import BusError
from iii_kit.logs import logger
from iii_kit.stream_frames import BEFORE_CONTENT, TERMINAL, FrameReader

log = logger(__name__)

TAIL_BYTES = 1_500
"""How much of a call's unfinished arguments a stored partial shows."""


class Partials:
    """Feeds the reader and forwards a partial when enough time has passed since the last.

    What came too early waits for that moment, not for another frame: a model that stalls has shown all it said. One
    task does the waiting for as long as something waits.
    """

    def __init__(self, parts: Parts, record: TurnRecord, entry_id: str, reader: FrameReader) -> None:
        self._parts = parts
        self._record = record
        self._entry_id = entry_id
        self._reader = reader
        self._clock = parts.world.clock
        self._pause = parts.limits().stream_coalesce_ms / 1000
        self._last = self._clock.monotonic()
        self._waits = False
        """Something was read that is not stored."""
        self._later: asyncio.Task[None] | None = None
        self._forwarding: asyncio.Task[None] | None = None

    async def pump(self, source: Source) -> None:
        """Read the stream to its end."""
        try:
            async for item in source:
                frame = self._reader.feed(item)
                if frame is None:
                    continue
                if frame.type in TERMINAL:
                    return
                if frame.type not in BEFORE_CONTENT:
                    await self._grown()
        finally:
            if self._later is not None:
                self._later.cancel()

    async def settled(self) -> None:
        """Return once no partial is on its way, so that none can overtake the final write."""
        begun = [task for task in (self._later, self._forwarding) if task is not None]
        if begun:
            await asyncio.gather(*begun, return_exceptions=True)

    async def _grown(self) -> None:
        """There is more to show: at once, or once enough time has passed."""
        self._waits = True
        if self._later is not None and self._later.done():
            self._later.result()
            self._later = None
        if self._later is not None:
            return
        if self._clock.monotonic() - self._last >= self._pause:
            await self._store()
        else:
            self._later = asyncio.create_task(self._store_later())

    async def _store_later(self) -> None:
        while self._waits:
            await self._clock.sleep(self._last + self._pause - self._clock.monotonic())
            await self._store()

    async def _store(self) -> None:
        self._forwarding = asyncio.ensure_future(self._forward())
        await asyncio.shield(self._forwarding)
        self._last = self._clock.monotonic()

    async def _forward(self) -> None:
        self._waits = False
        message = self._reader.partial()
        if message is None:
            return
        request = {
            "session_id": self._record.session_id,
            "entry_id": self._entry_id,
            "content": streaming(message.get("content"), self._reader.raw_arguments()),
            "origin": {"turn_id": self._record.turn_id},
        }
        try:
            await self._parts.bus.call("session::update-message", request, opts=self._parts.partial_opts())
        except BusError as error:
            log.warning("partial_not_stored", entry=self._entry_id, error=str(error))


def streaming(content: Any, raw: dict[str, str]) -> list[Any]:
    """The content to store: a call whose arguments are incomplete shows the end of their text as `_streaming`."""
    if not isinstance(content, list):
        return []
    return [_shown(block, raw) for block in cast("list[Any]", content)]


def _shown(block: Any, raw: dict[str, str]) -> Any:
    if not isinstance(block, dict):
        return block
    fields = cast("dict[str, Any]", block)
    arguments: Any = fields.get("arguments")
    text = raw.get(fields.get("id", ""))
    if fields.get("type") != "function_call" or text is None or not isinstance(arguments, dict):
        return fields
    known = cast("dict[str, Any]", arguments)
    if "_partial" not in known and "_raw" not in known:
        return fields
    shown = {key: value for key, value in known.items() if key not in ("_partial", "_raw")}
    tail = text.encode("utf-8", "replace")[-TAIL_BYTES:].decode("utf-8", "ignore")
    return {**fields, "arguments": {**shown, "_streaming": tail}}
