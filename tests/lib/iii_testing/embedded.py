"""The embedded engine over a store in a temporary directory, for tests that need a bus."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from iii_embedded import Engine, EngineSettings
from iii_embedded.local_bus import LocalBus
from iii_embedded.modules import FAMILIES
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
        self._families = (*FAMILIES, *families)
        self._settings = settings
        self._inline = inline
        self.store: SqliteStore | InlineStore = self._open()
        self.engine = Engine(world, self.store, settings)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.engine.port}"

    def attach(self, name: str, *, builtin: bool = False, stepwise: bool = False) -> LocalBus:
        return self.engine.attach(name, builtin=builtin, stepwise=stepwise)

    async def start(self) -> None:
        await self.engine.start()

    async def stop(self) -> None:
        """End as a process does that is asked to."""
        await self.engine.close()
        self.store.close()

    def crash(self) -> None:
        """End as a killed process does."""
        self.engine.crash()
        self.store.crash()

    async def restart(self) -> None:
        """Start again on the same directory and port, after `stop` or `crash`."""
        port = self.engine.port if self._settings.port is not None else None
        settings = EngineSettings(
            self._settings.host, port, self._settings.token, self._settings.origins, self._settings.grace_ms
        )
        self.store = self._open()
        self.engine = Engine(self.world, self.store, settings)
        await self.engine.start()

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
