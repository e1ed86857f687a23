"""The entry parts of the harness over a real store, engine and session store, with a queue that only records.

Steps are not run here: a test plays the loop by writing records. The loop's own ends (`cancel`, `unscheduled`) are
small ones that keep the rules the entry relies on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from iii_contracts.engine.queue import ENQUEUE
from iii_contracts.harness.configuration import HarnessConfig
from iii_contracts.harness.parked import EDIT_QUEUED, UNQUEUE
from iii_contracts.harness.send import SEND
from iii_contracts.harness.turn import STOP
from iii_contracts.harness.upkeep import ON_SESSION_DELETED, SWEEP_PENDING
from iii_embedded.engine import Engine, EngineSettings
from iii_embedded.local_bus import LocalBus
from iii_embedded.modules import state
from iii_harness.delivery import Delivery
from iii_harness.entry import idempotency
from iii_harness.entry.send import Sender
from iii_harness.entry.session_deleted import SessionPurge
from iii_harness.entry.stop import Stopper
from iii_harness.entry.sweep import Sweeper
from iii_harness.entry.unqueue import ParkedMessages
from iii_harness.events import HarnessEvents
from iii_harness.locks import Locks
from iii_harness.projection import SessionStatus
from iii_harness.queue_rows import SCOPE, QueueRows, dump_row, parse_row
from iii_harness.record import TurnRecord, from_row
from iii_harness.signals import CancelSignals, ExecutingSteps
from iii_harness.state_rows import StateRows
from iii_harness.turn_store import TurnStore
from iii_kit.bus import Call, Invocation, Opts, TxHandler
from iii_kit.errors import BusError, PartialSequence
from iii_kit.storage import Tx
from iii_siblings import sessions
from iii_store import Family, SqliteStore
from iii_testing.world import ManualWorld

JOBS = Family("test_jobs", (("CREATE TABLE test_jobs (n INTEGER PRIMARY KEY, data TEXT)",),))


class Cut(BaseException):
    """The process died at a call."""


class CuttingBus:
    """A bus whose process can die at its n-th call, before the call is sent or once it is done and unheard; or whose
    n-th call fails."""

    def __init__(self, bus: LocalBus) -> None:
        self._bus = bus
        self._left: int | None = None
        self._after = False
        self._error: BusError | None = None
        self.lag = 0
        """Turns of the loop that the answer of every call is late."""

    def cut(self, nth: int, *, after: bool) -> None:
        """Die at the `nth` call from now."""
        self._left, self._after, self._error = nth, after, None

    def fail(self, nth: int, error: BusError) -> None:
        """Let the `nth` call from now fail unsent, and only that one."""
        self._left, self._after, self._error = nth, False, error

    def disarm(self) -> bool:
        """Let every later call pass; True when the chosen one was never made."""
        missed, self._left = self.cut_missed, None
        return missed

    @property
    def cut_missed(self) -> bool:
        """True when the calls ended before the chosen one."""
        return self._left is not None and self._left > 0

    async def call(self, fn: str, data: Any, *, opts: Opts = Opts()) -> Any:
        """Make one call."""
        if self._left is None:
            answer = await self._bus.call(fn, data, opts=opts)
            for _ in range(self.lag):
                await asyncio.sleep(0)
            return answer
        try:
            return (await self._counted([Call(fn, data, opts=opts)]))[0]
        except PartialSequence as partial:
            raise partial.cause from partial

    async def sequence(self, calls: Sequence[Call]) -> list[Any]:
        """Make the calls; one by one while a cut is due."""
        return await self._counted(calls)

    async def _counted(self, calls: Sequence[Call]) -> list[Any]:
        if self._left is None:
            return await self._bus.sequence(calls)
        results: list[Any] = []
        for call in calls:
            self._left -= 1
            if self._left == 0 and not self._after:
                if self._error is not None:
                    raise PartialSequence(results, self._error)
                raise Cut
            try:
                results.append(await self._bus.perform(call))
            except BusError as error:
                raise PartialSequence(results, error) from error
            if self._left == 0:
                raise Cut
        return results

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)


class EntryBench:
    """One harness process without a loop: `crash` and `open` again to restart it over the same store."""

    def __init__(self, world: ManualWorld, store: SqliteStore, *, stepwise: bool = False) -> None:
        self.stepwise = stepwise
        self.world = world
        self.store = store
        self.config = HarnessConfig()
        self.enqueue_failures = 0
        self.unscheduled: list[tuple[TurnRecord, BusError]] = []
        self.engine = Engine(world, store, EngineSettings(port=None))
        state.install(self.engine.attach("iii-state", builtin=True))
        self.sessions = sessions.install(self.engine.attach("session-manager"), world)
        self.engine.attach("queue").serve(ENQUEUE, TxHandler(self._enqueue))
        self.bus = CuttingBus(self.engine.attach("harness", stepwise=stepwise))
        self.client = self.engine.attach("client")
        self._build()

    def _build(self) -> None:
        bus, world = self.bus, self.world

        def opts() -> Opts:
            return Opts(timeout_ms=10_000)

        async def prompt(text: str | None, strategy: str | None) -> str | None:
            return None if strategy == "disabled" else f"identity+{text or ''}"

        self.locks = Locks()
        self.signals = CancelSignals()
        self.executing = ExecutingSteps()
        self.turns = TurnStore(bus, world.clock, opts)
        self.queue = QueueRows(bus, StateRows(bus, SCOPE, parse_row, dump_row, opts))
        self.idem = StateRows(bus, idempotency.SCOPE, idempotency.parse_row, idempotency.dump_row, opts)
        self.events = HarnessEvents(bus, world.clock)
        self.events.provide()
        self.status = SessionStatus(bus, world.clock, self.turns, self.locks, opts)
        self.delivery = Delivery(bus, world, self.turns, self.queue, self.locks, self.events, self._unscheduled)
        self.sender = Sender(bus, world, self.turns, self.delivery, self.idem, lambda: self.config, opts, prompt)
        self.stopper = Stopper(
            bus, world, self.turns, self.locks, self.signals, self.executing, self.status, self.cancel
        )
        parked = ParkedMessages(self.queue, self.turns, self.events, world.clock)
        self.sweeper = Sweeper(bus, world, self.turns, self.locks, self.executing, self.idem, lambda: self.config)
        self.purge = SessionPurge(bus, self.turns, self.queue, self.locks, opts)
        bus.serve(SEND, self.sender.send)
        bus.serve(STOP, self.stopper.stop)
        bus.serve(UNQUEUE, parked.unqueue)
        bus.serve(EDIT_QUEUED, parked.edit)
        bus.serve(SWEEP_PENDING, self.sweeper.sweep)
        bus.serve(ON_SESSION_DELETED, self.purge.on_deleted)

    def _enqueue(self, tx: Tx, request: Any, _: Invocation) -> Any:
        if self.enqueue_failures:
            self.enqueue_failures -= 1
            raise BusError("queue_not_found", "queue 'harness-turn' is not defined")
        tx.execute("INSERT INTO test_jobs (data) VALUES (json(?))", (_json(request.data),))
        return {"messageReceiptId": request.messageReceiptId}

    async def _unscheduled(self, record: TurnRecord, error: BusError) -> None:
        self.unscheduled.append((record, error))
        await self.turns.save(replace(record, status="failed"))

    async def cancel(self, record: TurnRecord) -> None:
        """End a turn as the loop would: drain, terminal write, drain."""
        await self.end(record, "cancelled")

    async def end(self, record: TurnRecord, status: Any) -> None:
        """The skeleton of a finalisation (harness-loop 11.1); the session's lock is held by the caller."""
        await self.delivery.show_parked(record)
        ended = replace(record, status=status)
        await self.turns.save(ended)
        self.signals.clear(record.turn_id)
        await self.delivery.after_end(ended)

    async def send(self, message: Any = "hello", **fields: Any) -> Any:
        """`harness::send` as a client, of the model `m` unless told otherwise."""
        return await self.client.call("harness::send", {"message": message, "model": "m", **fields})

    async def call(self, fn: str, **data: Any) -> Any:
        """Any function, as a client."""
        return await self.client.call(fn, data)

    async def record(self, session_id: str) -> TurnRecord:
        """The stored record, read past every cache."""
        row = await self.client.call("state::get", {"scope": "harness_turn", "key": session_id})
        return from_row(row)

    async def texts(self, session_id: str) -> list[str]:
        """The texts of the transcript, in order."""
        page = await self.client.call("session::messages", {"session_id": session_id, "limit": 500})
        return ["".join(b.get("text", "") for b in item["message"]["content"]) for item in page["messages"]]

    async def rows(self, scope: str) -> list[Any]:
        """The stored rows of a scope."""
        return await self.client.call("state::list", {"scope": scope})

    async def jobs(self) -> list[Any]:
        """What was enqueued, in order."""
        found = await self.store.read(lambda r: r.execute("SELECT data FROM test_jobs ORDER BY n").fetchall())
        return [json.loads(row[0]) for row in found]

    def restarted(self) -> EntryBench:
        """Die, with nothing finished or tidied up, and start again over the same store."""
        self.engine.crash()
        return EntryBench(self.world, self.store, stepwise=self.stepwise)

    async def bring_back(self) -> None:
        """What a start does about the turns of the process before it."""
        await self.delivery.recover()
        await self.sweeper.redrive(whatever_age=True)


def _json(value: Any) -> str:
    return json.dumps(value)


def open_store(path: Path) -> SqliteStore:
    """The store with the tables of everything on the bench."""
    return SqliteStore(path / "stack.db", [state.FAMILY, sessions.FAMILY, JOBS], synchronous="OFF")


@asynccontextmanager
async def opened(world: ManualWorld, path: Path, *, stepwise: bool = False) -> AsyncIterator[EntryBench]:
    """A bench over a store of its own."""
    store = open_store(path)
    try:
        yield EntryBench(world, store, stepwise=stepwise)
    finally:
        store.close()
