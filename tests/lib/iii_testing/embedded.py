"""The embedded engine with its modules and its queue, over a store in a temporary directory."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import iii_queue
from iii_embedded import Engine, EngineSettings, LocalBus, modules
from iii_kit.world import World, real_world
from iii_store import Family, InlineStore, SqliteStore


class Embedded:
    """A running engine, its store and its world. `attach` gives a bus, `url` is where sockets connect."""

    def __init__(
        self,
        directory: Path,
        world: World,
        families: Sequence[Family],
        settings: EngineSettings,
        inline: bool,
    ) -> None:
        self.directory = directory
        self.world = world
        self._families = (*modules.FAMILIES, iii_queue.FAMILY, *families)
        self._settings = settings
        self._inline = inline
        self.store: SqliteStore | InlineStore = self._open()
        self.engine = Engine(world, self.store, settings)
        self._installed: list[Any] = []

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.engine.port}"

    def attach(self, name: str, *, builtin: bool = False, stepwise: bool = False) -> LocalBus:
        return self.engine.attach(name, builtin=builtin, stepwise=stepwise)

    async def start(self) -> None:
        await self.engine.start()
        bus = lambda name: self.engine.attach(name, builtin=True)  # noqa: E731
        self.queue = iii_queue.install(bus("queue"), self.store, self.world)
        self._installed = [*modules.install(bus, self.world), self.queue]
        for module in self._installed:
            await module.ready()

    async def stop(self) -> None:
        """End as a process does that is asked to."""
        for module in reversed(self._installed):
            await module.drain()
        await self.engine.close()
        self.store.close()

    def crash(self) -> None:
        """End as a killed process does."""
        self.engine.crash()
        self.store.crash()

    async def restart(self) -> None:
        """Start again on the same directory and port, after `stop` or `crash`."""
        port = self.engine.port if self._settings.port is not None else None
        settings = replace(self._settings, port=port)
        self.store = self._open()
        self.engine = Engine(self.world, self.store, settings)
        await self.start()

    def _open(self) -> SqliteStore | InlineStore:
        path = self.directory / "stack.db"
        if self._inline:
            return InlineStore(path, self._families, reach=self.world.reach)
        return SqliteStore(path, self._families, reach=self.world.reach)


@asynccontextmanager
async def embedded(
    world: World | None = None,
    *,
    families: Sequence[Family] = (),
    settings: EngineSettings | None = None,
    listening: bool = False,
    inline: bool = False,
    directory: Path | None = None,
) -> AsyncGenerator[Embedded]:
    """A started engine; `listening` opens its port (any free one), `inline` commits on the loop."""
    settings = settings or EngineSettings(port=0 if listening else None)
    with tempfile.TemporaryDirectory() as fresh:
        stack = Embedded(directory or Path(fresh), world or real_world(), families, settings, inline)
        await stack.start()
        try:
            yield stack
        finally:
            await stack.stop()
