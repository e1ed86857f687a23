"""The router may be there before the configuration that it reads (siblings 17.3)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from iii_embedded import modules
from iii_embedded.engine import Engine, EngineSettings
from iii_siblings import router
from iii_store import SqliteStore
from iii_testing.waiting import driven, settle
from iii_testing.world import manual_world


@pytest.mark.anyio
@pytest.mark.requirement("router.start.waits")
async def test_a_router_without_configuration_waits_for_it(tmp_path: Path) -> None:
    world = manual_world()
    store = SqliteStore(tmp_path / "stack.db", [*modules.FAMILIES, router.FAMILY])
    engine = Engine(world, store, EngineSettings(port=None))
    await engine.start()
    installed = router.install(engine.attach("llm-router"), world, store, {})
    ready = asyncio.ensure_future(installed.ready())
    for _ in range(20):
        await settle()
        await world.advance(0.5)
    assert not ready.done()
    modules.install(lambda name: engine.attach(name, builtin=True), world)
    await driven(world, asyncio.wait_for(ready, None))
    await installed.drain()
    await engine.close()
    store.close()
