"""Channels on a bus: order, kinds, back pressure, both ways of leaving (engine spec 8, 21.8)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from iii_kit.bus import Invocation
from iii_kit.errors import BusError
from iii_testing.buses import Wire
from iii_testing.waiting import settle


@pytest.mark.requirement("kit.bus.channels")
async def test_items_arrive_in_order_with_their_kind_and_the_stream_ends_after_the_last(wire: Wire) -> None:
    reader, writer = await wire.attach(), await wire.attach()
    channel = await reader.channel(4)
    items: list[str | bytes] = ["text", b"\x00bytes", "", b"", "ü" * 100_000, b"x" * 3_000_000, "last"]

    async def write() -> None:
        sink = await writer.sink(channel.writer.to_json())
        for item in items:
            await sink.send(item)
        await sink.close()

    writing = asyncio.ensure_future(write())
    assert [item async for item in channel.source] == items
    await writing


@pytest.mark.requirement("kit.bus.channel_refs")
async def test_a_ref_travels_inside_a_payload_and_can_be_passed_on(wire: Wire) -> None:
    caller, worker = await wire.attach(), await wire.attach()

    async def stream(data: Any, _: Invocation) -> Any:
        sink = await worker.sink(data["deep"][0]["writer"])
        await sink.send("one")
        await sink.close()
        return {"ref": data["deep"][0]["writer"]}

    spec = await wire.serve(worker, stream)

    async def forward(data: Any, _: Invocation) -> Any:
        return await worker.call(spec.id, {"deep": [{"writer": data["writer"]}]})

    passing = await wire.serve(worker, forward)
    channel = await caller.channel()
    calling = asyncio.ensure_future(caller.call(passing.id, {"writer": channel.writer.to_json()}))
    assert [item async for item in channel.source] == ["one"]
    assert await calling == {"ref": channel.writer.to_json()}


@pytest.mark.requirement("kit.bus.channels")
async def test_a_writer_waits_while_the_buffer_is_full(wire: Wire) -> None:
    reader, writer = await wire.attach(), await wire.attach()
    channel = await reader.channel(2)
    sink, sent = await writer.sink(channel.writer.to_json()), 0

    async def write() -> None:
        nonlocal sent
        for _ in range(200):
            await sink.send(b"x" * 200_000)
            sent += 1
        await sink.close()

    writing = asyncio.ensure_future(write())
    await asyncio.sleep(0.2 if wire.over_socket else 0)
    await settle()
    assert sent < 200
    assert len([item async for item in channel.source]) == 200
    await writing


@pytest.mark.requirement("kit.bus.channels")
async def test_a_writer_hears_that_its_reader_is_gone(wire: Wire) -> None:
    reader, writer = await wire.attach(), await wire.attach()
    channel = await reader.channel(1)
    sink = await writer.sink(channel.writer.to_json())
    await channel.source.close()
    with pytest.raises(BusError) as closed:
        async with asyncio.timeout(10):
            while True:
                await sink.send("x" * 10_000)
    assert closed.value.code == "channel_closed"
    await sink.close()


@pytest.mark.requirement("kit.bus.channels")
async def test_a_ref_that_nobody_gave_out_is_refused(wire: Wire) -> None:
    bus = await wire.attach()
    channel = await bus.channel()
    with pytest.raises(BusError) as unknown:
        await bus.sink({**channel.writer.to_json(), "access_key": "0" * 32})
    assert unknown.value.code == "channel_not_found"
    with pytest.raises(BusError):
        await bus.sink({"channel_id": "c"})
    await channel.source.close()
