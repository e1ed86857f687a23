"""Builds the parts of one harness and connects them; registers what they serve (harness-loop 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iii_contracts.harness import context, metrics, parked, send, status, turn, upkeep
from iii_contracts.harness.configuration import HarnessConfig
from iii_harness.catalog import Catalog
from iii_harness.context_policy import context_policy
from iii_harness.context_rows import context_rows
from iii_harness.delivery import Delivery
from iii_harness.entry import idempotency
from iii_harness.entry.send import Sender
from iii_harness.entry.session_deleted import SessionPurge
from iii_harness.entry.stop import Stopper
from iii_harness.entry.sweep import Sweeper
from iii_harness.entry.unqueue import ParkedMessages
from iii_harness.events import HarnessEvents
from iii_harness.locks import Locks
from iii_harness.metrics import Metrics
from iii_harness.needs import Needs
from iii_harness.patience import PatientCaller
from iii_harness.projection import SessionStatus
from iii_harness.prompt.identity import PromptResolver
from iii_harness.providers import Providers
from iii_harness.queue_rows import SCOPE, QueueRows, dump_row, parse_row
from iii_harness.record import TurnRecord
from iii_harness.serving import Serving
from iii_harness.settings import Settings
from iii_harness.shell.loop import Loop
from iii_harness.shell.parts import Parts
from iii_harness.signals import CancelSignals, ExecutingSteps
from iii_harness.state_rows import StateRows
from iii_harness.status import StatusReader
from iii_harness.surfaces import StepSurfaces
from iii_harness.tree import SessionTrees
from iii_harness.turn_store import TurnStore
from iii_kit.bus import Bus, Invocation, Json, Opts
from iii_kit.clients.configuration import ConfigurationClient
from iii_kit.errors import BusError
from iii_kit.world import World


class Assembled:
    """The parts of one harness over one bus."""

    def __init__(self, bus: Bus, world: World, seed: Mapping[str, Any] | None, namespace: str | None = None) -> None:
        clock = world.clock
        self.providers = Providers(bus, namespace)
        self.needs = Needs(bus, clock)
        self.patience = patience = PatientCaller(bus, clock, self.needs.look)
        self.settings = Settings(ConfigurationClient(bus, clock), seed)
        self.catalog = Catalog(bus)
        self.locks = Locks()
        self.signals = CancelSignals()
        self.executing = ExecutingSteps()
        self.turns = TurnStore(patience, clock, self.state_opts)
        self.queue = QueueRows(patience, StateRows(patience, SCOPE, parse_row, dump_row, self.state_opts))
        self.idem = StateRows(bus, idempotency.SCOPE, idempotency.parse_row, idempotency.dump_row, self.state_opts)
        self.contexts = context_rows(bus, self.state_opts)
        self.events = HarnessEvents(bus, clock)
        self.status = SessionStatus(bus, clock, self.turns, self.locks, self.opts)
        self.delivery = Delivery(patience, world, self.turns, self.queue, self.locks, self.events, self._unscheduled)
        self.loop = Loop(self._loop_parts(bus, world))
        self.sweeper = Sweeper(bus, world, self.turns, self.locks, self.executing, self.idem, self._config)

    def opts(self) -> Opts:
        """How calls of the session store travel."""
        return Opts(timeout_ms=self.settings.value.session_timeout_ms)

    def state_opts(self) -> Opts:
        """How calls of state travel (4, 17)."""
        timeout_ms = self.settings.value.session_timeout_ms
        return Opts(timeout_ms=timeout_ms, namespace=self.providers.state, hidden="harness state")

    def renewed(self) -> None:
        """A new connection begins: everything that mirrors what is stored is read anew."""
        self.turns.renewed()
        self.queue.renewed()
        self.loop.renewed()

    async def functions_changed(self, event: upkeep.FunctionsChange, invocation: Invocation) -> Json:
        """Functions came or went: the registry is read anew, and a needed worker looked for."""
        self.needs.look()
        return await self.catalog.on_change(event, invocation)

    def _config(self) -> HarnessConfig:
        return self.settings.value

    def _loop_parts(self, bus: Bus, world: World) -> Parts:
        surfaces = StepSurfaces(
            lambda: self.catalog.snapshot, lambda: self.settings.value.prompt_cache_sections, self.catalog.settled
        )
        return Parts(
            bus=self.patience,
            targets=bus,
            world=world,
            turns=self.turns,
            contexts=self.contexts,
            locks=self.locks,
            signals=self.signals,
            executing=self.executing,
            surfaces=surfaces,
            delivery=self.delivery,
            events=self.events,
            limits=lambda: self.settings,
            absent=self.catalog.absent,
            keeps_replies=lambda: self.catalog.snapshot.keeps_replies,
        )

    async def _unscheduled(self, record: TurnRecord, error: BusError) -> None:
        await self.loop.unscheduled(record, error)


def serve(serving: Serving, parts: Assembled, bus: Bus, world: World) -> None:
    """Register every function."""
    clock, turns, queue = world.clock, parts.turns, parts.queue
    trees = SessionTrees(bus)

    sender = Sender(
        bus,
        world,
        turns,
        parts.delivery,
        parts.idem,
        lambda: parts.settings.value,
        parts.opts,
        PromptResolver(bus, lambda: parts.catalog.snapshot),
    )
    stopper = Stopper(bus, world, turns, parts.locks, parts.signals, parts.executing, parts.status, parts.loop.cancel)
    parked_messages = ParkedMessages(queue, turns, parts.events, clock)
    reader = StatusReader(turns.load, queue.waiting, parts.contexts.read, parts.status.repair_soon)
    serving.serve(send.SEND, sender.send)
    serving.serve(turn.TURN, parts.patience.in_step(parts.loop.turn))
    serving.serve(turn.STOP, stopper.stop)
    serving.serve(status.STATUS, reader.status)
    serving.serve(parked.UNQUEUE, parked_messages.unqueue)
    serving.serve(parked.EDIT_QUEUED, parked_messages.edit)
    serving.serve(metrics.METRICS, Metrics(bus, trees, turns.load, parts.contexts.read).metrics)
    serving.serve(metrics.SESSION_TREE, trees.session_tree)
    serving.serve(context.CONTEXT_POLICY, context_policy)
    serving.serve(upkeep.SWEEP_PENDING, parts.sweeper.sweep)
    serving.serve(upkeep.ON_CONFIG_CHANGE, parts.settings.changed)
    serving.serve(upkeep.ON_FUNCTIONS_CHANGE, parts.functions_changed)
    serving.serve(upkeep.ON_SESSION_DELETED, SessionPurge(bus, turns, queue, parts.locks, parts.state_opts).on_deleted)
