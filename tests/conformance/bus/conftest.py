"""The buses under test: `LocalBus`, and `SdkBus` against the embedded engine or the one that `III_URL` names."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from iii_kit.world import real_world
from iii_store import Family, SqliteStore
from iii_testing.buses import Wire
from iii_testing.embedded import embedded

NOTES = Family("notes", (("CREATE TABLE notes(text TEXT PRIMARY KEY)",),))

KINDS = ("local", "stepwise", "sdk", "real") if os.environ.get("III_URL") else ("local", "stepwise", "sdk")


@pytest.fixture(scope="session", autouse=True)
def _markers_of_the_sdk_stay_out_of_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["HOME"] = str(tmp_path_factory.mktemp("home"))


@pytest.fixture(params=KINDS)
async def wire(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Wire]:
    async with AsyncExitStack() as ends:
        if request.param == "real":
            store = SqliteStore(tmp_path / "worker.db", [NOTES])
            ends.callback(store.close)
            yield await ends.enter_async_context(Wire("real", os.environ["III_URL"], store, None))
            return
        stack = await ends.enter_async_context(
            embedded(real_world(), families=[NOTES], listening=request.param == "sdk")
        )
        url = stack.url if request.param == "sdk" else None
        yield await ends.enter_async_context(Wire(request.param, url, stack.store, stack))
