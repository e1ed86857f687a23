"""The embedded engine: one registry, one router, one table of triggers, and the workers on them (engine spec 1, 23).

Workers in this process attach a `LocalBus`; others connect over the wire protocol of `server`.
"""

from __future__ import annotations

from dataclasses import dataclass

from iii_embedded.channels import Channels
from iii_embedded.local_bus import LocalBus
from iii_embedded.local_worker import LocalWorker
from iii_embedded.registry import Registry
from iii_embedded.routing import Router
from iii_embedded.triggers import TriggerTable
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
    grace_ms: int = 5_000
    """How long registrations wait for the announcement of their worker (engine spec 4.2)."""


class Engine:
    """One embedded engine over one store."""

    def __init__(self, world: World, store: Store, settings: EngineSettings = EngineSettings()) -> None:
        self.world = world
        self.store = store
        self.settings = settings
        self.registry = Registry()
        self.router = Router(self.registry, world.ids)
        self.triggers = TriggerTable(world.ids)
        self.channels = Channels(world)
        self._core: LocalBus | None = None

    def attach(self, worker_name: str, *, builtin: bool = False, stepwise: bool = False) -> LocalBus:
        """A bus for a worker of this process. Ids of `builtin` ones are reserved (engine spec 4.4, 9.1)."""
        id_ = worker_name if builtin else self.world.ids.uuid()
        worker = LocalWorker(id_, worker_name, self.world.clock.now_ms(), self.router, self.store, builtin=builtin)
        if self.registry.claim(worker, worker_name) is not None:
            raise ValueError(f"a worker named {worker_name!r} is attached already")
        self.registry.workers[worker.id] = worker
        return LocalBus(self, worker, stepwise=stepwise)

    def leave(self, worker: Worker) -> None:
        """Clean up after a worker that is gone (engine spec 4.6)."""
        if worker.gone:
            return
        worker.gone = True
        self.registry.forget(worker)
        self.triggers.forget(worker)
        if isinstance(worker, LocalWorker):
            worker.end()

    async def start(self) -> None:
        """Install the engine's own functions and listen."""
        core = self._core = self.attach("iii-engine-functions", builtin=True)
        self.channels.install(core)

    async def close(self) -> None:
        """Stop."""
        for worker in list(self.registry.workers.values()):
            self.leave(worker)

    def crash(self) -> None:
        """End as a killed process does: nothing is cleaned up, told or finished."""
        for worker in list(self.registry.workers.values()):
            if isinstance(worker, LocalWorker):
                worker.dead = True
                worker.end()
