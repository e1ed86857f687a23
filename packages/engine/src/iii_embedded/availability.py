"""The engine's own trigger types: functions and workers that come and go (engine spec 9.6).

Changes of the set of functions are gathered for a moment, so that a worker that registers a hundred functions makes one
event, and told only when the set of ids differs from the one that was told last.
"""

from __future__ import annotations

import asyncio

from iii_contracts.engine.functions import FUNCTIONS_AVAILABLE
from iii_contracts.engine.workers import WORKERS_AVAILABLE
from iii_embedded.local_worker import LocalWorker
from iii_embedded.registry import Registry
from iii_embedded.views import function_summary
from iii_embedded.workers import Worker
from iii_kit.bindings import Bindings
from iii_kit.bus import Bus
from iii_kit.world import Clock

GATHER_S = 1.0
"""How long changes are gathered."""


class Availability:
    """Tells the bound functions what has come and gone."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._functions = Bindings(FUNCTIONS_AVAILABLE)
        self._workers = Bindings(WORKERS_AVAILABLE)
        self._changed = asyncio.Event()
        self._told: set[tuple[str, str]] = set()
        self._core: LocalWorker | None = None

    def install(self, bus: Bus, core: LocalWorker) -> None:
        """Provide both types on the engine's own bus."""
        self._core = core
        bus.provide(FUNCTIONS_AVAILABLE, self._functions)
        bus.provide(WORKERS_AVAILABLE, self._workers)
        bus.each_epoch(self._watch)

    def stop(self) -> None:
        """Tell nothing any more."""
        self._core = None

    def functions_changed(self) -> None:
        """A function came or went."""
        self._changed.set()

    def connected(self, worker: Worker) -> None:
        """A worker is there; its functions are not known yet."""
        self._tell("worker_connected", worker)

    def updated(self, worker: Worker) -> None:
        """A worker has announced itself."""
        self._tell("worker_metadata_updated", worker)

    def disconnected(self, worker: Worker) -> None:
        """A worker is gone."""
        self._tell("worker_disconnected", worker)

    def _tell(self, event: str, worker: Worker) -> None:
        if self._core is not None and len(self._workers):
            self._core.send(self._workers.fire({"event": event, "worker_id": worker.id}))

    async def _watch(self) -> None:
        self._told = set(self._registry.functions)
        while True:
            await self._changed.wait()
            await self._clock.sleep(GATHER_S)
            self._changed.clear()
            now = set(self._registry.functions)
            if now == self._told or self._core is None:
                continue
            self._told = now
            if len(self._functions):
                rows = [function_summary(function) for _, function in sorted(self._registry.functions.items())]
                self._core.send(self._functions.fire({"event": "functions_changed", "functions": rows}))
