"""The page host: one port with the page's files and the bus at `/ws` (siblings 15, 15.3).

The few files are answered by the WebSocket server that the stack has loaded anyway: a web framework beside it would
cost more time at the start than everything the page host does.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from iii_console.assets import Asset, Assets, NoPage
from iii_console.gate import Gate
from iii_console.relay import FAREWELL_S, relay
from iii_kit.encoding import MAX_BYTES
from iii_kit.logs import logger

USUAL_PORT = 3113
PORTS_TRIED = 40
"""How many ports after the usual one are tried before any free one is taken."""

BUS = "/ws"
KEEPALIVE_S = 20
HANDSHAKE_S = 10

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

log = logger(__name__)
_sockets = logging.getLogger("iii_console.sockets")
_sockets.setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Where the page is served, which bus it speaks to, and what it is told from the start."""

    engine_url: str
    host: str = "127.0.0.1"
    port: int | None = None
    """None: the usual port, or the next free one."""
    page: Mapping[str, Any] = field(default_factory=dict[str, Any])


class PageHost:
    """A running page host."""

    def __init__(self, settings: PageSettings) -> None:
        self._settings = settings
        self._gate = Gate(settings.host)
        self._assets: Assets | None = None
        self._server: Server | None = None

    @property
    def url(self) -> str:
        """Where a browser finds the page."""
        if self._server is None:
            raise RuntimeError("the page host does not listen")
        host = self._settings.host
        port: int = self._server.sockets[0].getsockname()[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/"

    async def start(self) -> None:
        """Listen. Raises `OSError` when the port that was asked for cannot be had."""
        if self._settings.port is not None:
            self._server = await self._listen(self._settings.port)
            return
        for port in (*range(USUAL_PORT, USUAL_PORT + PORTS_TRIED), 0):
            try:
                self._server = await self._listen(port)
                return
            except OSError as error:
                if error.errno != errno.EADDRINUSE or port == 0:
                    raise

    async def ready(self) -> None:
        """It works as soon as it listens."""

    async def drain(self) -> None:
        """Close every page's connection with 1001 and stop listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _listen(self, port: int) -> Server:
        return await serve(
            self._serve,
            self._settings.host,
            port,
            process_request=self._answer,
            compression=None,
            max_size=MAX_BYTES,
            open_timeout=HANDSHAKE_S,
            ping_interval=KEEPALIVE_S,
            ping_timeout=KEEPALIVE_S,
            close_timeout=FAREWELL_S,
            server_header=None,
            logger=_sockets,
        )

    async def _serve(self, connection: ServerConnection) -> None:
        request = connection.request
        query = "" if request is None else urlsplit(request.path).query
        await relay(connection, self._settings.engine_url, query)

    async def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer a request for a file, refuse what is foreign, let a handshake for the bus pass."""
        reason = self._gate.refusal(request.headers.get_all("Host"), request.headers.get_all("Origin"))
        if reason is not None:
            log.warning("page_refused", reason=reason, address=connection.remote_address)
            return _text(HTTPStatus.FORBIDDEN, reason)
        if request.method not in ("GET", "HEAD"):
            return _text(HTTPStatus.METHOD_NOT_ALLOWED, "files are only read here")
        path = unquote(urlsplit(request.path).path)
        if path == BUS:
            upgrade = "websocket" in request.headers.get("Upgrade", "").lower()
            return None if upgrade else _text(HTTPStatus.UPGRADE_REQUIRED, "this path is a WebSocket")
        try:
            assets = await self._loaded()
        except NoPage as missing:
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, str(missing))
        asset = assets.find(path)
        if asset is None:
            return _text(HTTPStatus.NOT_FOUND, "there is no such page here")
        policy = assets.policy(request.headers["Host"])
        return _file(asset, policy, request.headers.get("If-None-Match", ""))

    async def _loaded(self) -> Assets:
        if self._assets is None:
            self._assets = await asyncio.to_thread(Assets, self._settings.page)
        return self._assets


def _file(asset: Asset, policy: str, known: str) -> Response:
    more = {"Content-Security-Policy": policy, "ETag": asset.tag, "Cache-Control": "no-cache"}
    if asset.tag in (tag.strip().removeprefix("W/") for tag in known.split(",")):
        return _response(HTTPStatus.NOT_MODIFIED, b"", more)
    return _response(HTTPStatus.OK, asset.body, {**more, "Content-Type": asset.type})


def _text(status: HTTPStatus, text: str) -> Response:
    more = {"Content-Type": "text/plain; charset=utf-8", "Content-Security-Policy": "default-src 'none'"}
    return _response(status, f"{text}\n".encode(), {**more, "Cache-Control": "no-store"})


def _response(status: HTTPStatus, body: bytes, more: Mapping[str, str]) -> Response:
    headers = Headers({**HEADERS, **more, "Connection": "close", "Content-Length": str(len(body))})
    return Response(status.value, status.phrase, headers, body)
