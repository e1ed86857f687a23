"""What goes out on one socket: a bounded queue and the task that writes it (engine spec 2.4, 23).

Nothing in the engine ever waits for a peer that does not read. When its queue passes the limit the connection is
closed with 1013, and nobody else notices.
"""

from __future__ import annotations

import asyncio
from collections import deque

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from iii_kit.logs import logger

TRY_AGAIN_LATER = 1013
FAREWELL_S = 2.0
"""How long a closing handshake may take before the connection is cut."""

_log = logger(__name__)


class Outbox:
    """The frames that wait for one peer."""

    def __init__(self, socket: ServerConnection, limit: int) -> None:
        self._socket = socket
        self._limit = limit
        self._frames: deque[bytes] = deque()
        self._waiting = 0
        self._news = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._closed = False
        self._writer = asyncio.get_running_loop().create_task(self._write())
        self._farewell: asyncio.Task[None] | None = None

    def put(self, frame: bytes) -> None:
        """Send `frame` after those that wait; dropped when the connection is closing."""
        if self._closed:
            return
        self._frames.append(frame)
        self._waiting += len(frame)
        self._empty.clear()
        self._news.set()
        if self._waiting > self._limit:
            _log.warning("peer_does_not_read", waiting=self._waiting)
            self._frames.clear()
            self._writer.cancel()
            self._close(TRY_AGAIN_LATER, "")

    def finish(self, code: int | None, reason: str = "") -> None:
        """Send what waits, then close; nothing more is taken."""
        if not self._closed:
            self._close(code, reason)

    def abort(self) -> None:
        """Cut the connection without a word."""
        self._closed = True
        self._frames.clear()
        self._writer.cancel()
        self._socket.transport.abort()

    def end(self) -> None:
        """The connection is over: nothing is sent any more, except by a closing that has begun."""
        if self._farewell is not None:
            return
        self._closed = True
        self._frames.clear()
        self._writer.cancel()

    async def closed(self) -> None:
        """Return when a closing that has begun is over."""
        if self._farewell is not None:
            await asyncio.wait([self._farewell])

    def _close(self, code: int | None, reason: str) -> None:
        self._closed = True
        self._farewell = asyncio.get_running_loop().create_task(self._say_farewell(code, reason))

    async def _say_farewell(self, code: int | None, reason: str) -> None:
        try:
            async with asyncio.timeout(FAREWELL_S):
                await self._empty.wait()
                self._writer.cancel()
                async with self._socket.send_context():
                    self._socket.protocol.send_close(code, reason)
        except (TimeoutError, ConnectionClosed):
            pass
        finally:
            self._socket.transport.abort()

    async def _write(self) -> None:
        try:
            while True:
                await self._news.wait()
                while self._frames:
                    frame = self._frames.popleft()
                    await self._socket.send(frame, text=True)
                    self._waiting -= len(frame)
                self._news.clear()
                self._empty.set()
        except ConnectionClosed:
            pass
        finally:
            self._empty.set()
