"""The entry parts of the harness over a real store, engine and session store, with a queue that only records.

Steps are not run here: a test plays the loop by writing records. The loop's own ends (`cancel`, `unscheduled`) are
small ones that keep the rules the entry relies on.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
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
from iii_kit.bus import Invocation, Opts, TxHandler
from iii_kit.errors import BusError
from iii_kit.storage import Tx
from iii_siblings import sessions
from iii_store import Family, SqliteStore
from iii_testing.world import ManualWorld

JOBS = Family("test_jobs", (("CREATE TABLE test_jobs (n INTEGER PRIMARY KEY, data TEXT)",),))


class EntryBench:
    """One harness process without a loop: `crash` and `open` again to restart it over the same store."""

    def __init__(self, world: ManualWorld, store: SqliteStore, *, stepwise: bool = False) -> None:
        self.world = world
        self.store = store
        self.config = HarnessConfig()
        self.enqueue_failures = 0
        self.unscheduled: list[tuple[TurnRecord, BusError]] = []
        self.engine = Engine(world, store, EngineSettings(port=None))
        state.install(self.engine.attach("iii-state", builtin=True))
        self.sessions = sessions.install(self.engine.attach("session-manager"), world)
        self.engine.attach("queue").serve(ENQUEUE, TxHandler(self._enqueue))
        self.bus = self.engine.attach("harness", stepwise=stepwise)
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
        self.purge = SessionPurge(bus, self.turns, self.queue, opts)
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

    def crash(self) -> None:
        """Die: nothing is finished or tidied up; the store stays."""
        self.engine.crash()


def _json(value: Any) -> str:
    return json.dumps(value)


def open_store(path: Path) -> SqliteStore:
    """The store with the tables of everything on the bench."""
    return SqliteStore(path / "stack.db", [state.FAMILY, sessions.FAMILY, JOBS])


@asynccontextmanager
async def opened(world: ManualWorld, path: Path, *, stepwise: bool = False) -> AsyncIterator[EntryBench]:
    """A bench over a store of its own."""
    store = open_store(path)
    bench = EntryBench(world, store, stepwise=stepwise)
    try:
        yield bench
    finally:
        await bench.engine.close()
        store.close()
