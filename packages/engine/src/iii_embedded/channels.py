"""Channels: one-way pipes of items between two ends that meet by a secret (engine spec 8, siblings 1.3).

Both kinds of end work on the same `Pipe`: WebSockets (`serve`) and ends inside this process (`open_source`,
`open_sink`). Channels live in memory and do not survive the engine.
"""

from __future__ import annotations

import asyncio
import hmac
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Literal, cast

from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed

from iii_contracts.engine.channels import CREATE, DEFAULT_BUFFER, MAX_BUFFER, CreateRequest
from iii_kit.bus import ChannelRef, Host, Invocation, Json, Sink, Source
from iii_kit.errors import BusError
from iii_kit.world import World

Item = str | bytes
Direction = Literal["read", "write"]

LIFETIME_S = 300.0
"""A channel with an end that nobody took is forgotten after this long."""

SWEEP_S = 60.0
"""How often that is looked at."""


class ReaderGone(BusError):
    """Nobody will ever read what is put into this pipe."""

    def __init__(self) -> None:
        super().__init__("channel_closed", "the reader of the channel is gone")


class Pipe:
    """The items between two ends, at most `capacity` of them; `over` is told when both ends are taken and one is left.

    Iterating takes items, and ends after the last one of a writer that is done.
    """

    __slots__ = ("_capacity", "_changed", "_items", "_over", "abandoned", "taken", "written")

    def __init__(self, capacity: int, over: Callable[[], object]) -> None:
        self._capacity = capacity
        self._over = over
        self._items: deque[Item] = deque()
        self._changed: list[asyncio.Future[None]] = []
        self.taken: tuple[Direction, ...] = ()
        self.written = False
        self.abandoned = False

    async def put(self, item: Item) -> None:
        """Add an item once there is room; raises `ReaderGone`, or `BusError` when this side has ended the pipe."""
        items = self._items
        while len(items) >= self._capacity and not self.abandoned:
            await self._change()
        if self.abandoned:
            raise ReaderGone
        if self.written:
            raise BusError("channel_closed", "this end of the channel is closed")
        items.append(item)
        if self._changed:
            self._wake()

    def __aiter__(self) -> AsyncIterator[Item]:
        return self

    async def __anext__(self) -> Item:
        items = self._items
        while not items:
            if self.written or self.abandoned:
                raise StopAsyncIteration
            await self._change()
        if self._changed:
            self._wake()
        return items.popleft()

    def take_end(self, direction: Direction) -> None:
        """One of the ends has its owner."""
        self.taken += (direction,)
        if self.written or self.abandoned:
            self._left()

    def end(self) -> None:
        """The writer is gone: nothing follows what is in the pipe."""
        self.written = True
        self._left()

    def abandon(self) -> None:
        """The reader is gone: what is in the pipe is lost, and the writer hears of it at its next item."""
        self.abandoned = True
        self._items.clear()
        self._left()

    def _left(self) -> None:
        if self._changed:
            self._wake()
        if len(self.taken) == 2:
            self._over()

    def _change(self) -> asyncio.Future[None]:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changed.append(waiting)
        return waiting

    def _wake(self) -> None:
        changed, self._changed = self._changed, []
        for waiting in changed:
            if not waiting.done():
                waiting.set_result(None)


class _Channel:
    """A pipe and the key that opens it."""

    __slots__ = ("key", "made_at", "pipe")

    def __init__(self, key: str, pipe: Pipe, made_at: float) -> None:
        self.key = key
        self.pipe = pipe
        self.made_at = made_at


class _PipeSource:
    """The read end inside this process."""

    __slots__ = ("_pipe",)

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def __aiter__(self) -> AsyncIterator[Item]:
        return self._pipe

    async def close(self) -> None:
        """Leave."""
        self._pipe.abandon()


class _PipeSink:
    """The write end inside this process."""

    __slots__ = ("_pipe", "send")

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self.send = pipe.put
        """Send one item, waiting for room."""

    async def close(self) -> None:
        """End the stream."""
        self._pipe.end()


class Channels:
    """All channels of one engine."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._channels: dict[str, _Channel] = {}

    def __len__(self) -> int:
        return len(self._channels)

    def install(self, bus: Host) -> None:
        """Serve `engine::channels::create` on `bus` and forget abandoned channels while it is connected."""
        bus.serve(CREATE, self._create)
        bus.each_epoch(self._sweeping)

    def create(self, buffer: int = DEFAULT_BUFFER) -> tuple[ChannelRef, ChannelRef]:
        """A new channel: its writer and its reader end."""
        channel_id, key, _ = self._new(buffer)
        return ChannelRef(channel_id, key, "write"), ChannelRef(channel_id, key, "read")

    def connected(self, buffer: int) -> tuple[ChannelRef, Source]:
        """A new channel whose read end is taken by its maker: its writer end, and the source."""
        channel_id, key, pipe = self._new(buffer)
        pipe.taken = ("read",)
        return ChannelRef(channel_id, key, "write"), _PipeSource(pipe)

    def find(self, channel_id: str, key: str) -> bool:
        """True when there is such a channel and `key` opens it."""
        return self._found(channel_id, key) is not None

    def open_source(self, ref: ChannelRef) -> Source:
        """Take the read end; raises `BusError` `channel_not_found` or `channel_taken`."""
        return _PipeSource(self._open(ref, "read"))

    def open_sink(self, ref: ChannelRef) -> Sink:
        """Take the write end; raises `BusError` `channel_not_found` or `channel_taken`."""
        return _PipeSink(self._open(ref, "write"))

    async def serve(self, websocket: Connection, channel_id: str, key: str, direction: Direction) -> None:
        """Be the socket of one end until it is over; returns with the socket closed or dropped.

        The caller has answered an unknown channel (`find`) in the handshake. An end that is taken is closed at once.
        """
        pipe = self._found(channel_id, key)
        if pipe is None or direction in pipe.taken:
            await websocket.close()
            return
        pipe.take_end(direction)
        # A writer that is held back reads no pongs: a slow reader must not cost it its connection.
        websocket.ping_timeout = None
        try:
            if direction == "write":
                await _write_from(websocket, pipe)
            else:
                await _read_to(websocket, pipe)
        finally:
            if direction == "write":
                pipe.end()
            else:
                pipe.abandon()

    def sweep(self) -> None:
        """Forget channels that are too old to have an end that nobody took."""
        oldest = self._world.clock.monotonic() - LIFETIME_S
        for channel_id, channel in list(self._channels.items()):
            pipe = channel.pipe
            if len(pipe.taken) < 2 and channel.made_at <= oldest:
                del self._channels[channel_id]
                if "read" not in pipe.taken:
                    pipe.abandon()
                else:
                    pipe.end()

    async def _create(self, request: CreateRequest, _: Invocation) -> Json:
        size = DEFAULT_BUFFER if request.buffer_size is None else request.buffer_size
        writer, reader = self.create(size)
        return {"writer": writer.to_json(), "reader": reader.to_json()}

    def _new(self, buffer: int) -> tuple[str, str, Pipe]:
        channel_id, key = self._world.ids.uuid(), self._world.ids.hex()
        pipe = Pipe(min(max(buffer, 1), MAX_BUFFER), partial(self._channels.pop, channel_id, None))
        self._channels[channel_id] = _Channel(key, pipe, self._world.clock.monotonic())
        return channel_id, key, pipe

    def _found(self, channel_id: str, key: str) -> Pipe | None:
        channel = self._channels.get(channel_id)
        if channel is None or not hmac.compare_digest(channel.key.encode(), key.encode()):
            return None
        return channel.pipe

    def _open(self, ref: ChannelRef, direction: Direction) -> Pipe:
        pipe = self._found(ref.channel_id, ref.access_key)
        if pipe is None:
            raise BusError("channel_not_found", "Channel not found")
        if direction in pipe.taken:
            raise BusError("channel_taken", f"the {direction} end of the channel is taken")
        pipe.take_end(direction)
        return pipe

    async def _sweeping(self) -> None:
        while True:
            await self._world.clock.sleep(SWEEP_S)
            self.sweep()


async def _write_from(websocket: Connection, pipe: Pipe) -> None:
    """Move what the writer sends into the pipe; a writer whose reader left is dropped without a close frame."""
    try:
        async for item in websocket:
            await pipe.put(item)
    except ConnectionClosed:
        return
    except ReaderGone:
        _drop(websocket)


async def _read_to(websocket: Connection, pipe: Pipe) -> None:
    """Send what is in the pipe, then a close frame without a code. What the reader sends is read and dropped."""
    listening = asyncio.create_task(_listen(websocket, pipe.abandon))
    try:
        async for item in pipe:
            await websocket.send(item)
        if not pipe.abandoned:
            await _close_plainly(websocket)
    except ConnectionClosed:
        return
    finally:
        listening.cancel()


async def _listen(websocket: Connection, left: Callable[[], None]) -> None:
    try:
        async for _ in websocket:
            pass
    except ConnectionClosed:
        pass
    left()


async def _close_plainly(websocket: Connection) -> None:
    """Close with an empty close frame: `Connection.close` can only send one with a code."""
    try:
        async with websocket.send_context():
            websocket.protocol.send_close()
    except ConnectionClosed:
        pass


def _drop(websocket: Connection) -> None:
    cast("asyncio.Transport", cast("Any", websocket).transport).abort()
