"""Channels: ends in this process and on sockets, back pressure, what happens when an end leaves."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlencode

import pytest
from websockets.asyncio.client import ClientConnection, connect

from iii_embedded.channels import LIFETIME_S, SWEEP_S, Channels, Pipe
from iii_kit.bus import ChannelRef
from iii_kit.errors import BusError
from iii_testing.embedded import embedded
from iii_testing.waiting import settle, until
from iii_testing.world import ManualWorld

pytestmark = pytest.mark.anyio


async def rest(source: Any) -> list[Any]:
    return [item async for item in source]


@pytest.mark.requirement("channels.order")
async def test_a_writer_may_be_done_before_the_reader_comes(world: ManualWorld) -> None:
    channels = Channels(world)
    writer, reader = channels.create(4)
    sink = channels.open_sink(writer)
    for item in ("a", b"b", ""):
        await sink.send(item)
    await sink.close()
    assert await rest(channels.open_source(reader)) == ["a", b"b", ""]
    assert len(channels) == 0


@pytest.mark.requirement("channels.back_pressure")
async def test_a_full_buffer_holds_the_writer_back_until_an_item_is_taken(world: ManualWorld) -> None:
    channels = Channels(world)
    writer, reader = channels.create(2)
    sink, source = channels.open_sink(writer), channels.open_source(reader)
    sent: list[int] = []

    async def write() -> None:
        for n in range(4):
            await sink.send(str(n))
            sent.append(n)
        await sink.close()

    writing = asyncio.ensure_future(write())
    await settle()
    assert sent == [0, 1]
    items = aiter(source)
    assert await anext(items) == "0"
    await settle()
    assert sent == [0, 1, 2]
    assert await rest(source) == ["1", "2", "3"]
    await writing


@pytest.mark.requirement("channels.reader_gone")
async def test_a_writer_that_is_held_back_is_freed_when_the_reader_leaves(world: ManualWorld) -> None:
    channels = Channels(world)
    writer, reader = channels.create(1)
    sink, source = channels.open_sink(writer), channels.open_source(reader)
    await sink.send("one")
    sending = asyncio.ensure_future(sink.send("two"))
    await settle()
    assert not sending.done()
    await source.close()
    with pytest.raises(BusError, match="channel_closed"):
        await sending
    with pytest.raises(BusError, match="channel_closed"):
        await sink.send("three")
    assert len(channels) == 0


async def test_nothing_can_be_sent_on_an_end_that_was_closed(world: ManualWorld) -> None:
    channels = Channels(world)
    sink = channels.open_sink(channels.create()[0])
    await sink.close()
    with pytest.raises(BusError, match="channel_closed"):
        await sink.send("late")


@pytest.mark.requirement("channels.access")
async def test_an_end_opens_once_and_with_its_key_alone(world: ManualWorld) -> None:
    channels = Channels(world)
    writer, reader = channels.create()
    other = channels.create()[0]
    assert channels.find(writer.channel_id, writer.access_key)
    assert not channels.find(writer.channel_id, other.access_key)
    assert not channels.find("none", writer.access_key) and not channels.find(writer.channel_id, "é")
    with pytest.raises(BusError, match="channel_not_found"):
        channels.open_sink(ChannelRef(writer.channel_id, other.access_key, "write"))
    channels.open_sink(writer)
    channels.open_source(reader)
    for again in (channels.open_sink, channels.open_source):
        with pytest.raises(BusError, match="channel_taken"):
            again(writer)


@pytest.mark.requirement("channels.sweep")
async def test_a_channel_with_an_end_that_nobody_took_is_forgotten_after_five_minutes(world: ManualWorld) -> None:
    async with embedded(world) as stack:
        channels = stack.engine.channels
        lonely, _ = channels.create(1)
        both, other = channels.create(1)
        sink, _, kept = channels.open_sink(lonely), channels.open_sink(both), channels.open_source(other)
        await sink.send("fills the buffer")
        sending = asyncio.ensure_future(sink.send("waits"))
        await world.advance(LIFETIME_S - SWEEP_S)
        assert len(channels) == 2
        await world.advance(2 * SWEEP_S)
        assert len(channels) == 1 and not channels.find(lonely.channel_id, lonely.access_key)
        with pytest.raises(BusError, match="channel_closed"):
            await sending
        await kept.close()


@pytest.mark.requirement("channels.buffer_clamped")
@pytest.mark.parametrize(("asked", "given"), [(0, 1), (1, 1), (1024, 1024), (5000, 1024)])
async def test_a_buffer_size_is_clamped(world: ManualWorld, asked: int, given: int) -> None:
    channels = Channels(world)
    sink = channels.open_sink(channels.create(asked)[0])
    for _ in range(given):
        await asyncio.wait_for(sink.send("x"), 5)
    sending = asyncio.ensure_future(sink.send("over"))
    await settle()
    assert not sending.done()
    sending.cancel()


async def test_items_that_wait_are_taken_before_the_end(world: ManualWorld) -> None:
    pipe = Pipe(3, over=lambda: None)
    await pipe.put("a")
    pipe.end()
    assert await rest(pipe) == ["a"]
    assert await rest(pipe) == []


def address(url: str, ref: ChannelRef) -> str:
    return f"{url}/ws/channels/{ref.channel_id}?{urlencode({'key': ref.access_key, 'dir': ref.direction})}"


async def attach(url: str, ref: ChannelRef, **options: Any) -> ClientConnection:
    return await connect(address(url, ref), compression=None, ping_interval=None, **options)


@pytest.mark.requirement("channels.reader_socket_read")
async def test_the_socket_of_a_reader_is_read_and_its_pings_are_answered() -> None:
    async with embedded(listening=True) as stack:
        writer, reader = stack.engine.channels.create()
        async with await attach(stack.url, reader) as socket:
            await socket.send("read and dropped")
            await asyncio.wait_for(await socket.ping(), 10)
            sink = stack.engine.channels.open_sink(writer)
            await sink.send("still flows")
            await sink.close()
            assert await rest(socket) == ["still flows"]
            assert socket.close_code == 1005, "the close frame has no code"


@pytest.mark.requirement("channels.writer_dropped")
async def test_a_socket_that_is_held_back_is_dropped_when_its_reader_leaves() -> None:
    async with embedded(listening=True) as stack:
        writer, reader = stack.engine.channels.create(1)
        source = stack.engine.channels.open_source(reader)
        socket = await attach(stack.url, writer)
        for n in range(3):
            await socket.send(str(n))
        assert await anext(aiter(source)) == "0"
        await source.close()
        await asyncio.wait_for(socket.wait_closed(), 10)
        assert socket.close_code == 1006
        await until(lambda: len(stack.engine.channels) == 0)


async def test_a_sink_hears_that_the_socket_of_its_reader_broke() -> None:
    async with embedded(listening=True) as stack:
        writer, reader = stack.engine.channels.create(1)
        sink = stack.engine.channels.open_sink(writer)
        socket = await attach(stack.url, reader)
        await sink.send("one")
        assert await socket.recv() == "one"
        socket.transport.abort()

        async def send_on() -> None:
            while True:
                await sink.send("more")

        with pytest.raises(BusError, match="channel_closed"):
            await asyncio.wait_for(send_on(), 10)
