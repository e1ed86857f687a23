"""A TCP relay before the engine, so that a test can cut connections without touching either side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit


class Relay:
    """Passes bytes on until it is `cut`; while it is not `open` it lets no connection through."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self._sides: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[Any]] = set()
        self.port = 0
        self.open = True

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.open:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._pumps.add(task)
        task.add_done_callback(self._pumps.discard)
        try:
            far_reader, far = await asyncio.open_connection(self._target.hostname, self._target.port)
        except OSError:
            writer.transport.abort()
            return
        if not self.open:
            writer.transport.abort()
            far.transport.abort()
            return
        self._sides |= {writer, far}
        for source, sink in ((reader, far), (far_reader, writer)):
            pump = asyncio.create_task(self._pump(source, sink))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    def cut(self, *, reopen: bool = True) -> None:
        """Break every connection."""
        self.open = reopen
        for side in self._sides:
            side.transport.abort()
        self._sides.clear()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
        sink.transport.abort()


@asynccontextmanager
async def relaying(target: str) -> AsyncGenerator[Relay]:
    """A relay to the engine at `target`."""
    relay = Relay(target)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        relay.cut(reopen=False)
        server.close()
        await server.wait_closed()
        while relay._pumps:
            await asyncio.wait(relay._pumps)
