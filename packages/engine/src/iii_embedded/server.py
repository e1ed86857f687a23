"""The port of the engine (engine spec 2): WebSocket paths, limits, handshakes."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import parse_qs, unquote, urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from iii_embedded.access import Access
from iii_embedded.outbox import FAREWELL_S
from iii_kit.encoding import MAX_BYTES
from iii_kit.logs import logger

if TYPE_CHECKING:
    from iii_embedded.engine import Engine

HANDSHAKE_S = 10
KEEPALIVE_S = 20
CHANNELS = "/ws/channels/"

_log = logger(__name__)
_sockets = logging.getLogger("iii_embedded.sockets")
_sockets.setLevel(logging.CRITICAL)


class Listener:
    """The listening socket and everything that connects to it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        settings = engine.settings
        self._access = Access(settings.host, settings.token, settings.origins)
        self._server: Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port. Raises `OSError` when it cannot be had."""
        self._server = await serve(
            self._serve,
            host,
            port,
            process_request=self._admit,
            compression=None,
            max_size=MAX_BYTES,
            open_timeout=HANDSHAKE_S,
            ping_interval=KEEPALIVE_S,
            ping_timeout=KEEPALIVE_S,
            close_timeout=FAREWELL_S,
            server_header=None,
            logger=_sockets,
        )
        return self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Take no more connections."""
        if self._server is not None:
            self._server.server.close()

    async def close(self) -> None:
        """Close every connection that is left with 1001."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def abort(self) -> None:
        """Cut every connection and stop listening, without a word."""
        if self._server is None:
            return
        self._server.server.close()
        for connection in list(self._server.connections):
            connection.transport.abort()
        self._server.close(close_connections=False)

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        refusal = self._access.refusal(request)
        if refusal is not None:
            _log.warning("connection_refused", status=int(refusal), address=connection.remote_address)
            return connection.respond(refusal, f"{refusal.phrase}\n")
        if "websocket" not in request.headers.get("Upgrade", "").lower():
            return connection.respond(HTTPStatus.BAD_REQUEST, "this is a WebSocket endpoint\n")
        url = urlsplit(request.path)
        if url.path in ("/", "", "/otel"):
            return None
        if not url.path.startswith(CHANNELS):
            return connection.respond(HTTPStatus.NOT_FOUND, "Not found\n")
        end = _channel_end(request)
        if end is None:
            return connection.respond(HTTPStatus.BAD_REQUEST, "a channel needs `key` and `dir=read` or `dir=write`\n")
        if not self._engine.channels.find(end[0], end[1]):
            return connection.respond(HTTPStatus.NOT_FOUND, "Channel not found")
        return None

    async def _serve(self, connection: ServerConnection) -> None:
        request = cast("Request", connection.request)
        path = urlsplit(request.path).path
        if path == "/otel":
            await _discard(connection)
            return
        end = _channel_end(request) if path.startswith(CHANNELS) else None
        if end is not None:
            await self._engine.channels.serve(connection, *end)
        else:
            await self._engine.lifecycle.serve(connection)


def _channel_end(request: Request) -> tuple[str, str, Literal["read", "write"]] | None:
    url = urlsplit(request.path)
    query = parse_qs(url.query, keep_blank_values=True)
    key, direction = query.get("key", [None])[0], query.get("dir", [""])[0]
    if key is None or direction not in ("read", "write"):
        return None
    return unquote(url.path[len(CHANNELS) :]), key, direction


async def _discard(connection: ServerConnection) -> None:
    """Take telemetry and drop it: nothing reads spans here (engine spec 19.3)."""
    try:
        while True:
            await connection.recv(decode=False)
    except ConnectionClosed:
        pass
