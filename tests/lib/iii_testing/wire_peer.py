"""A bare client of the wire protocol: frames in, frames out, nothing answered by itself."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

Frame = dict[str, Any]
WAIT_S = 10.0


class Failed(Exception):
    """An answer with an error."""

    def __init__(self, error: Frame) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: str = error["code"]
        self.message: str = error["message"]


class WirePeer:
    """One connection; `frames` are all that arrived, in order."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.frames: list[Frame] = []
        self.raw: list[bytes] = []
        self._news = asyncio.Condition()
        self._over = asyncio.Event()
        self._reader = asyncio.ensure_future(self._read())
        self.id = ""

    @property
    def token(self) -> str:
        return self.frames[0]["reattach_token"]

    async def _read(self) -> None:
        try:
            while True:
                raw = await self.socket.recv(decode=False)
                async with self._news:
                    self.raw.append(raw)
                    self.frames.append(json.loads(raw))
                    self._news.notify_all()
        except ConnectionClosed:
            self._over.set()
            async with self._news:
                self._news.notify_all()

    async def over(self) -> int | None:
        """The close code, once the connection has ended."""
        async with asyncio.timeout(WAIT_S):
            await self._over.wait()
        return self.socket.close_code

    async def send(self, frame: Frame | str | bytes) -> None:
        text = json.dumps(frame) if isinstance(frame, dict) else frame
        await self.socket.send(text)

    def seen(self, type_: str, **fields: Any) -> list[Frame]:
        wanted = {"type": type_, **fields}.items()
        return [frame for frame in self.frames if wanted <= _flat(frame).items()]

    async def expect(self, type_: str, *, count: int = 1, **fields: Any) -> Frame:
        """The `count`th frame that matches, once it is there."""
        async with asyncio.timeout(WAIT_S), self._news:
            await self._news.wait_for(lambda: len(self.seen(type_, **fields)) >= count or self._over.is_set())
        found = self.seen(type_, **fields)
        assert len(found) >= count, f"no {type_} {fields} among {[frame['type'] for frame in self.frames]}"
        return found[count - 1]

    async def settle(self) -> None:
        """Return when the engine has read all that was sent, and what it had to say has arrived."""
        count = len(self.seen("pong"))
        await self.send({"type": "ping"})
        await self.expect("pong", count=count + 1)

    async def announce(self, name: str | None = None, **data: Any) -> None:
        """Announce and wait until it counts."""
        await self.call("engine::workers::register", {**({} if name is None else {"name": name}), **data})

    async def register(self, id_: str, **fields: Any) -> None:
        await self.send({"type": "registerfunction", "id": id_, **fields})
        await self.settle()

    async def start(self, function_id: str, data: Any = None, **fields: Any) -> str:
        """Send a call; its invocation id."""
        id_ = str(uuid.uuid4())
        frame = {"type": "invokefunction", "invocation_id": id_, "function_id": function_id, "data": data, **fields}
        await self.send(frame)
        return id_

    async def outcome(self, id_: str) -> Any:
        """The result of a call; raises `Failed`."""
        frame = await self.expect("invocationresult", invocation_id=id_)
        if frame.get("error") is not None:
            raise Failed(frame["error"])
        return frame.get("result")

    async def call(self, function_id: str, data: Any = None, **fields: Any) -> Any:
        return await self.outcome(await self.start(function_id, {} if data is None else data, **fields))

    async def answer(self, frame: Frame, **fields: Any) -> None:
        """Answer a call that arrived."""
        reply = {"type": "invocationresult", "invocation_id": frame["invocation_id"], "function_id": "any", **fields}
        await self.send(reply)

    def drop(self) -> None:
        """Cut the connection."""
        self.socket.transport.abort()

    async def close(self) -> None:
        await self.socket.close()
        await self._reader


@asynccontextmanager
async def wire_peers(url: str) -> AsyncGenerator[Any]:
    """`peer = await connect(name, announce=True, path="/", **facts)`; all are closed at the end."""
    opened: list[WirePeer] = []

    async def make(name: str | None = None, *, announce: bool = True, path: str = "/", **facts: Any) -> WirePeer:
        socket = await connect(url + path, max_size=None, compression=None, ping_interval=None)
        peer = WirePeer(socket)
        opened.append(peer)
        peer.id = (await peer.expect("workerregistered"))["worker_id"]
        if announce:
            await peer.announce(name, **facts)
        return peer

    try:
        yield make
    finally:
        for peer in opened:
            await peer.close()


def _flat(frame: Frame) -> dict[str, Any]:
    return {key: value for key, value in frame.items() if isinstance(value, (str, int, float, bool, type(None)))}
