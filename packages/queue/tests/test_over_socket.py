"""The provider as a worker of its own, over a socket, with a store of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import iii_queue
from iii_contracts.spec import FunctionSpec
from iii_embedded import Engine, EngineSettings, LocalBus
from iii_kit.bus import Invocation
from iii_kit.sdk_bus import SdkBus, SdkOptions
from iii_kit.world import real_world
from iii_store import SqliteStore
from iii_testing.waiting import until

pytestmark = pytest.mark.anyio

FIFO = {"type": "fifo", "message_group_field": "g", "backoff_ms": 1, "poll_interval_ms": 10}


async def engine(store: SqliteStore, port: int) -> tuple[Engine, LocalBus]:
    """An engine without a queue provider, and a bus on it."""
    made = Engine(real_world(), store, EngineSettings(port=port))
    await made.start()
    return made, made.attach("tests")


def serve(bus: LocalBus, got: list[Any], holding: asyncio.Event | None = None) -> None:
    async def run(request: Any, _: Invocation) -> None:
        got.append(request["n"])
        if holding is not None:
            await holding.wait()

    bus.serve(FunctionSpec("t::fn", "of a test", None, None, "invalid"), run)


@pytest.mark.requirement("queue.provider.over_socket")
async def test_jobs_of_a_separate_provider_outlive_the_engine(tmp_path: Path) -> None:
    engine_store = SqliteStore(tmp_path / "engine.db", [])
    queue_store = SqliteStore(tmp_path / "queue.db", [iii_queue.FAMILY])
    first, bus = await engine(engine_store, 0)
    url = f"ws://127.0.0.1:{first.port}"
    sdk = SdkBus(SdkOptions("queue", url=url, reconnect_initial_ms=20, reconnect_max_ms=100), queue_store)
    try:
        provider = iii_queue.install(sdk, queue_store, real_world())
        await provider.ready()
        functions = first.registry.functions
        await until(
            lambda: ("default", "engine::queue::enqueue") in functions and ("default", "queue::define") in functions
        )
        got, never = [], asyncio.Event()
        serve(bus, got, never)
        assert await bus.call("queue::define", {"queue": "q", "config": FIFO}) == {"queue": "q", "changed": True}
        for n in range(3):
            assert await bus.enqueue("q", "t::fn", {"g": "a", "n": n})
        await until(lambda: got == [0])
        port = first.port
        await first.close()
        second, bus = await engine(engine_store, port)
        try:
            again: list[int] = []
            serve(bus, again)
            await until(lambda: again == [0, 1, 2], seconds=20)
            await until(lambda: provider.dispatcher.idle)
            await provider.drain()
        finally:
            await second.close()
    finally:
        await first.close()
        await sdk.close()
        queue_store.close()
        engine_store.close()
