"""The embedded engine: one registry, one router, one table of triggers, and the workers on them (engine spec 1, 23).

Workers in this process attach a `LocalBus`; others connect over the wire protocol of `server`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from iii_embedded.availability import Availability
from iii_embedded.channels import Channels
from iii_embedded.introspection import Introspection
from iii_embedded.lifecycle import Lifecycle
from iii_embedded.local_bus import LocalBus
from iii_embedded.local_worker import LocalWorker
from iii_embedded.peer import Peer
from iii_embedded.registry import Registry
from iii_embedded.routing import Router
from iii_embedded.server import Listener
from iii_embedded.triggers import TriggerTable
from iii_embedded.views import describe_this_process
from iii_embedded.workers import Worker
from iii_kit.storage import Store
from iii_kit.world import World


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How the engine can be reached: `port` 0 takes any free one, None opens none."""

    host: str = "127.0.0.1"
    port: int | None = 49134
    token: str | None = None
    origins: tuple[str, ...] = ()
    """Origins of pages that may connect; every other browser page is refused."""
    outgoing_limit: int = 256 * 1024 * 1024
    """Bytes that may wait for one peer that does not read (engine spec 23)."""
    grace_ms: int = 5_000
    """How long registrations wait for the announcement of their worker (engine spec 4.2)."""


class Engine:
    """One embedded engine over one store."""

    def __init__(self, world: World, store: Store, settings: EngineSettings = EngineSettings()) -> None:
        self.world = world
        self.store = store
        self.settings = settings
        self.registry = Registry(self._functions_changed)
        self.router = Router(self.registry, world.ids)
        self.triggers = TriggerTable(world.ids, world.clock)
        self.channels = Channels(world)
        self.availability = Availability(self.registry, world.clock)
        self.lifecycle = Lifecycle(self)
        self._listener = None if settings.port is None else Listener(self)
        self._port: int | None = None

    @property
    def port(self) -> int:
        """The port it listens on."""
        if self._port is None:
            raise RuntimeError("the engine does not listen")
        return self._port

    async def start(self) -> None:
        """Install the engine's own functions and listen."""
        core = self.attach("iii-engine-functions", builtin=True)
        Introspection(self).install(core)
        self.availability.install(core, core.worker)
        self.channels.install(core)
        if self._listener is not None and self.settings.port is not None:
            self._port = await self._listener.start(self.settings.host, self.settings.port)

    async def warm_up(self) -> None:
        """Build what the first calls of functions in this process would build, in pieces: nobody waits for it."""
        for function in list(self.registry.functions.values()):
            if function.spec is not None:
                function.spec.prepare()
                await asyncio.sleep(0)

    def attach(self, worker_name: str, *, builtin: bool = False, stepwise: bool = False) -> LocalBus:
        """A bus for a worker of this process. Ids of `builtin` ones are reserved (engine spec 4.4, 9.1)."""
        id_ = worker_name if builtin else self.world.ids.uuid()
        worker = LocalWorker(id_, worker_name, self.world.clock.now_ms(), self.router, self.store, builtin=builtin)
        if not builtin:
            describe_this_process(worker)
        if self.registry.claim(worker, worker_name) is not None:
            raise ValueError(f"a worker named {worker_name!r} is connected already")
        self.registry.workers[worker.id] = worker
        if not builtin:
            self.availability.connected(worker)
            self.availability.updated(worker)
        return LocalBus(self, worker, stepwise=stepwise)

    def leave(self, worker: Worker) -> None:
        """Clean up after a worker that is gone (engine spec 4.6): first what it owned, then those who wait for it."""
        if worker.gone:
            return
        worker.gone = True
        self.registry.forget(worker)
        worker.ended()
        self.triggers.forget(worker)
        self.availability.disconnected(worker)

    async def close(self) -> None:
        """Stop: no more connections, workers of this process leave, sockets get what waits for them and 1001."""
        if self._listener is not None:
            self._listener.stop()
        self.availability.stop()
        workers = list(self.registry.workers.values())
        for worker in reversed(workers):
            if isinstance(worker, LocalWorker):
                self.leave(worker)
                await worker.finished()
        await self.lifecycle.close([worker for worker in workers if isinstance(worker, Peer)])
        if self._listener is not None:
            await self._listener.close()

    def crash(self) -> None:
        """End as a killed process does: nothing is cleaned up, told or finished; later uses raise `EpochEnded`."""
        workers = list(self.registry.workers.values())
        for worker in workers:
            worker.gone = True
        for worker in sorted(workers, key=lambda worker: not isinstance(worker, LocalWorker)):
            worker.ended()
        if self._listener is not None:
            self._listener.abort()

    def _functions_changed(self) -> None:
        self.availability.functions_changed()
