"""The harness as one worker: what it registers, the order of its start, its drain (harness-loop 1.1).

Trigger types and functions are registered at once; everything that needs answers of others runs at the start of each
connection, and only then does the worker say that it is ready. What is not there yet, or went away, is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from iii_contracts.harness import configuration, upkeep
from iii_contracts.harness.configuration import HarnessConfig
from iii_harness.alone import require_alone
from iii_harness.assembly import Assembled, serve
from iii_harness.needs import QUEUE as THE_QUEUE
from iii_harness.needs import Need
from iii_harness.serving import Serving
from iii_harness.sweep_timer import SweepTimer
from iii_harness.turn_queue import QUEUE, definition
from iii_kit.bus import Bus, Handle
from iii_kit.clients.failures import is_transient
from iii_kit.clients.queue import QueueClient, QueueUndefined
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger
from iii_kit.world import World

log = logger(__name__)

RETRY_S = 2.0
"""Pause before a start that failed is tried again."""

GRACE_S = 10.0
"""How long a drain waits for steps that run; what is cut off then is delivered again."""


class Harness:
    """The installed worker."""

    def __init__(self, bus: Bus, world: World, seed: Mapping[str, Any] | None, namespace: str | None = None) -> None:
        self._bus = bus
        self._world = world
        self._namespace = namespace
        self._parts = Assembled(bus, world, seed, namespace)
        self._serving = Serving(bus)
        self._first_start: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer = SweepTimer(bus, world.clock)
        self._epochs: Handle | None = None

    async def ready(self) -> None:
        """Return once the worker works; raises what waiting will not change."""
        await asyncio.shield(self._first_start)

    async def drain(self, grace_s: float = GRACE_S) -> None:
        """Accept nothing more and let running steps end; what still runs after `grace_s` stays durable."""
        self._parts.events.closed()
        self._serving.close()
        self._parts.patience.stop()
        self._timer.close()
        if not await self._serving.idle(self._world.clock, grace_s):
            log.warning("drained_with_running_calls", grace_seconds=grace_s)
        await self._parts.status.drain()
        if self._epochs is not None:
            self._epochs.close()

    def start(self) -> None:
        """Register trigger types, then functions, then what must be heard; the rest follows with each connection."""
        parts = self._parts
        parts.events.provide()
        serve(self._serving, parts, self._bus, self._world)
        self._bus.bind("configuration", upkeep.ON_CONFIG_CHANGE.id, {"configuration_id": configuration.ENTRY_ID})
        for event in ("engine::functions-available", "engine::workers-available"):
            self._bus.bind(event, upkeep.ON_FUNCTIONS_CHANGE.id, {})
        self._bus.bind("session::deleted", upkeep.ON_SESSION_DELETED.id, {})
        parts.settings.on_change(self._follow)
        self._epochs = self._bus.each_epoch(self._epoch)

    async def _epoch(self) -> None:
        """One connection: get ready, then watch over turns until it ends."""
        while True:
            try:
                await self._boot()
                break
            except EpochEnded:
                raise
            except Exception as error:
                if not self._first_start.done() and _is_final(error):
                    self._first_start.set_exception(error)
                    return
                log.warning("start_failed", error=str(error))
            await self._world.clock.sleep(RETRY_S)
        if not self._first_start.done():
            self._first_start.set_result(None)
        await self._watch()

    async def _boot(self) -> None:
        parts = self._parts
        parts.renewed()
        await require_alone(self._bus, self._namespace)
        await parts.needs.met()
        await parts.providers.fix()
        await parts.settings.boot()
        await self._define(parts.settings.value)
        await self._timer.follow(parts.settings.value.sweep_expression)
        await parts.catalog.seed()
        await parts.events.ready()

    async def _watch(self) -> None:
        """Read the contracts, bring back what was left, look for orphans as long as the connection lasts."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read_registry())
                tasks.create_task(self._bring_back())
                tasks.create_task(self._parts.needs.watch(self._returned))
                tasks.create_task(self._parts.status.sweep())
                tasks.create_task(self._parts.sweeper.passes())
        except* EpochEnded:
            pass

    async def _read_registry(self) -> None:
        """Read the contracts, once more after a while when that failed: no event would tell of them again."""
        catalog = self._parts.catalog
        await catalog.refresh(whole=True)
        while not catalog.complete:
            await self._world.clock.sleep(RETRY_S)
            await catalog.refresh(whole=True)

    async def _returned(self, needs: frozenset[Need]) -> None:
        """Needed workers are back, perhaps with an empty store: what depends on them is done once more."""
        try:
            if THE_QUEUE in needs:
                await self._define(self._parts.settings.value)
        except EpochEnded:
            raise
        except (BusError, QueueUndefined) as error:
            log.warning("queue_not_defined", error=str(error))
        await self._bring_back()

    async def _bring_back(self) -> None:
        try:
            await self._parts.delivery.recover()
            await self._parts.sweeper.redrive(whatever_age=True)
        except EpochEnded:
            raise
        except BusError as error:
            log.warning("turns_not_brought_back", error=str(error))

    async def _follow(self, before: HarnessConfig, now: HarnessConfig) -> None:
        """A changed configuration: what is bound to a value is bound anew."""
        if not self._first_start.done():
            return
        await self._timer.follow(now.sweep_expression)
        if now.turn_concurrency != before.turn_concurrency:
            await self._define(now)

    async def _define(self, config: HarnessConfig) -> None:
        queues = QueueClient(self._bus, self._world.clock, self._parts.providers.queue)
        await queues.define(QUEUE, definition(config.turn_concurrency), may_lose_redelivery=True)


def _is_final(error: Exception) -> bool:
    """True for a start that no waiting mends: it is the configuration or the program that must change."""
    if isinstance(error, BusError):
        return not is_transient(error) and error.code != "not_connected"
    return not isinstance(error, QueueUndefined)


def install(bus: Bus, world: World, seed: Mapping[str, Any] | None = None, *, namespace: str | None = None) -> Harness:
    """Install the harness on `bus`; `seed` is the configuration of a store that holds none, `namespace` the worker's
    own."""
    harness = Harness(bus, world, seed, namespace)
    harness.start()
    return harness
