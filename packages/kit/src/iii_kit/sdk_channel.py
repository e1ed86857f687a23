"""Channel ends over sockets of our own (engine spec 8.2, 21.8, siblings 1.3).

The SDK's ends lose everything 40 seconds after they connect (their pings are never answered), stop at messages over
1 MiB and split binary items. Ours send no pings, take 64 MiB and keep every item whole.
"""

# pyright: reportMissingTypeStubs=false
from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from iii.channels import ChannelReader, ChannelWriter, build_channel_url, resolve_headers
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from iii_kit.bus import ChannelRef, Json
from iii_kit.encoding import MAX_BYTES
from iii_kit.errors import BusError, PayloadTooLarge

READER_CLOSE_S = 0.2
"""A real engine reads nothing from a reader, so it never answers its close frame."""

WRITER_CLOSE_S = 300.0
"""A writer that is held back by a full buffer closes when its reader has caught up."""


class Endpoints:
    """Opens the ends of channels of one engine."""

    def __init__(self, address: str, headers: dict[str, str] | None) -> None:
        self._address = address
        self._headers = headers

    async def source(self, ref: ChannelRef) -> SocketSource:
        """Take the read end."""
        return SocketSource(await self._connect(ref, READER_CLOSE_S))

    async def sink(self, ref: ChannelRef) -> SocketSink:
        """Take the write end."""
        return SocketSink(await self._connect(ref, WRITER_CLOSE_S))

    async def _connect(self, ref: ChannelRef, close_timeout: float) -> ClientConnection:
        try:
            return await connect(
                build_channel_url(self._address, ref.channel_id, ref.access_key, ref.direction),
                additional_headers=resolve_headers(self._headers),
                ping_interval=None,
                max_size=MAX_BYTES,
                compression=None,
                close_timeout=close_timeout,
            )
        except InvalidStatus as error:
            raise BusError("channel_not_found", "Channel not found") from error
        except (OSError, InvalidHandshake, TimeoutError) as error:
            raise BusError("channel_closed", f"cannot open channel {ref.channel_id}: {error}") from error


class SocketSource:
    """The read end of a channel."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        try:
            async for item in self._socket:
                yield item
        except ConnectionClosed:
            # A broken channel looks like an ended one on every bus: what is streamed carries its own final item.
            return

    async def close(self) -> None:
        """Leave."""
        await self._socket.close()


class SocketSink:
    """The write end of a channel."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, item: str | bytes) -> None:
        """Send one item; waits while the engine reads nothing because the buffer is full."""
        size = len(item) if isinstance(item, bytes) or item.isascii() else len(item.encode("utf-8"))
        if size > MAX_BYTES:
            raise PayloadTooLarge(size, MAX_BYTES)
        try:
            await self._socket.send(item)
        except ConnectionClosed as error:
            raise BusError("channel_closed", "the channel is closed: its reader is gone") from error

    async def close(self) -> None:
        """End the stream after everything sent has been handed over."""
        await self._socket.close()


class SocketChannel:
    """A fresh channel whose read end we hold."""

    def __init__(self, writer: ChannelRef, source: SocketSource) -> None:
        self._writer = writer
        self._source = source

    @property
    def writer(self) -> ChannelRef:
        """The write end, for a payload."""
        return self._writer

    @property
    def source(self) -> SocketSource:
        """The read end, connected."""
        return self._source


def with_refs(data: Json) -> Json:
    """`data` as it was sent: the ready-made ends that the SDK puts in place of refs become refs again."""
    if isinstance(data, dict):
        fields = cast("dict[str, Any]", data)
        for name, value in fields.items():
            if isinstance(value, (dict, list, ChannelReader, ChannelWriter)):
                fields[name] = with_refs(value)
        return fields
    if isinstance(data, list):
        items = cast("list[Any]", data)
        for index, value in enumerate(items):
            if isinstance(value, (dict, list, ChannelReader, ChannelWriter)):
                items[index] = with_refs(value)
        return items
    if isinstance(data, (ChannelReader, ChannelWriter)):
        url = urlsplit(data._url)  # pyright: ignore[reportPrivateUsage]
        query = parse_qs(url.query)
        return {
            "channel_id": url.path.rsplit("/", 1)[1],
            "access_key": query["key"][-1],
            "direction": "read" if isinstance(data, ChannelReader) else "write",
        }
    return data
