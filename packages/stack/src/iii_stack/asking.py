"""A few calls over one short connection (engine spec 2.2, 3, 5): what the commands that read are made of.

The SDK takes a third of a second to import. It reconnects, registers and traces, none of which a question needs.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from msgspec import Raw
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from iii_kit import encoding
from iii_kit.errors import BusError

CONNECT_S: Final = 5.0
CALL_MS: Final = 30_000
TOKEN_VARIABLE: Final = "III_TOKEN"


class NotConnected(Exception):
    """Nobody answers at the URL, or not as a bus does. The text says why."""


class Asking:
    """A connection that calls functions."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.ensure_future(self._read())

    async def call(self, fn: str, data: Any, *, timeout_ms: int = CALL_MS) -> Any:
        """Call and wait for the result. Raises `BusError`."""
        invocation_id = str(uuid.uuid4())
        frame = {
            "type": "invokefunction",
            "invocation_id": invocation_id,
            "function_id": fn,
            "data": Raw(encoding.encode(data)),
        }
        text = encoding.encode(frame).decode()
        answer = self._waiting[invocation_id] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._socket.send(text)
                return _outcome(await answer, fn)
        except TimeoutError:
            raise BusError("TIMEOUT", f"invocation timed out after {timeout_ms}ms", fn) from None
        except ConnectionClosed:
            raise BusError("connection_lost", "the bus went away before it answered", fn) from None
        finally:
            del self._waiting[invocation_id]

    async def greeted(self) -> None:
        """Return when the engine has said that it is one. Raises `ConnectionClosed`."""
        await self._greeted

    async def close(self) -> None:
        """End the connection."""
        await self._socket.close()
        await self._reading

    async def _read(self) -> None:
        try:
            while True:
                self._take(encoding.decode(await self._socket.recv(decode=False)))
        except ConnectionClosed as lost:
            for waiting in (self._greeted, *self._waiting.values()):
                if not waiting.done():
                    waiting.set_exception(lost)
                    waiting.exception()  # whoever waits is told; that nobody does is no mistake

    def _take(self, frame: dict[str, Any]) -> None:
        if frame["type"] == "workerregistered" and not self._greeted.done():
            self._greeted.set_result(None)
        elif frame["type"] == "invocationresult":
            waiting = self._waiting.get(frame["invocation_id"])
            if waiting is not None and not waiting.done():
                waiting.set_result(frame)


def _outcome(frame: dict[str, Any], fn: str) -> Any:
    error = frame.get("error")
    if error is not None:
        raise BusError(error["code"], error["message"], fn)
    return frame.get("result")


@asynccontextmanager
async def asking(url: str) -> AsyncGenerator[Asking]:
    """A connection to the bus at `url`. Raises `NotConnected`."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    headers = {"Authorization": f"Bearer {token}"} if token else None
    try:
        async with asyncio.timeout(CONNECT_S):
            socket = await connect(url, additional_headers=headers, compression=None, max_size=encoding.MAX_BYTES)
            bus = Asking(socket)
            try:
                await bus.greeted()
            except BaseException:
                await bus.close()
                raise
    except TimeoutError:
        raise NotConnected(f"no answer within {CONNECT_S:g} s") from None
    except ConnectionClosed as error:
        raise NotConnected(f"it closed the connection: {error}") from None
    except (OSError, InvalidHandshake) as error:
        raise NotConnected(str(error)) from None
    try:
        yield bus
    finally:
        await bus.close()
