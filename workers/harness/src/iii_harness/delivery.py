"""How a message reaches a session: the one way of sends and of messages parked for a running turn (harness-loop 10).

Running: the message is parked as a queue row. Else it is appended and, under the session's lock, joins a turn that
waits for calls or seeds a new one. Message, record and queue entry go out as one sequence; after any prefix of it
either nothing was accepted, or the record is found by the orphan redrive.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from iii_harness.durable_sequence import SequenceFailed, perform
from iii_harness.entry.points import EntryPoint
from iii_harness.errors import invalid_request
from iii_harness.events import HarnessEvents
from iii_harness.locks import Locks
from iii_harness.queue_rows import QueueRow, QueueRows
from iii_harness.record import Options, TurnRecord
from iii_harness.seeding import preview_of, seed
from iii_harness.turn_queue import enqueue_call
from iii_harness.turn_store import TurnStore
from iii_harness.working_directory import with_root
from iii_kit.bus import Call, Caller
from iii_kit.errors import BusError, CodedError
from iii_kit.logs import logger
from iii_kit.world import World

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message on its way into a session."""

    session_id: str
    message: dict[str, Any]
    options: Options
    turn_id: str
    """The turn it gets when it seeds one."""
    entry_id: str | None = None
    fs_root: str | None = None
    """The root that the send named."""
    default_root: str | None = None
    """The root of a brand-new session that names none."""
    before: tuple[Call, ...] = ()
    """Writes that come first in the same sequence: the idempotency row, the session."""
    after: Callable[[str], Sequence[Call]] = field(default=lambda _: ())
    """Best-effort writes once the message is delivered to the turn of that id."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """Which turn has the message, and how it got it."""

    record: TurnRecord
    merged: bool = False
    queued: bool = False


class Delivery:
    """Parks, merges, seeds and drains."""

    def __init__(
        self,
        bus: Caller,
        world: World,
        turns: TurnStore,
        queue: QueueRows,
        locks: Locks,
        events: HarnessEvents,
        unscheduled: Callable[[TurnRecord, BusError], Awaitable[None]],
    ) -> None:
        """`unscheduled` finalises a fresh turn whose first step could not be enqueued; the session's lock is held."""
        self._bus = bus
        self._world = world
        self._turns = turns
        self._queue = queue
        self._locks = locks
        self._events = events
        self._unscheduled = unscheduled

    async def deliver(self, incoming: Incoming) -> Delivered:
        """Bring a message to its session; returns once that is durable."""
        record = await self._turns.load(incoming.session_id)
        if record is not None and record.status == "running":
            return await self._park_beside(incoming, record)
        async with self._locks.hold(incoming.session_id):
            record = await self._turns.load(incoming.session_id)
            if record is not None and record.status == "running":
                await self._park(incoming, record)
                return Delivered(record, merged=True, queued=True)
            if record is not None and not record.terminal:
                return Delivered(await self._merge(incoming, record), merged=True)
            return Delivered(await self._start(incoming, record, parked=False))

    async def parked(self, session_id: str) -> list[QueueRow]:
        """The rows that wait, oldest first."""
        return await self._queue.waiting(session_id)

    async def drain(self, record: TurnRecord) -> TurnRecord:
        """Append the parked rows and delete them; returns the record with the filesystem root they name."""
        if not await self._queue.of(record.session_id):
            return record
        self._world.reach(EntryPoint.BEFORE_DRAIN)
        rows = await self._queue.drain(record.session_id, record.turn_id)
        self._world.reach(EntryPoint.AFTER_DRAIN)
        return _rooted(record, rows)

    async def show_parked(self, record: TurnRecord) -> None:
        """Append the parked rows and keep them: until the next turn is stored they say that there must be one."""
        await self._queue.deliver(record.session_id, record.turn_id)

    async def after_end(self, record: TurnRecord) -> None:
        """Deliver what was parked up to the end of a turn and, unless it was cancelled, seed the turn that answers."""
        await self.show_parked(record)
        rows = await self._queue.of(record.session_id)
        if not rows:
            return
        if record.status == "cancelled" or not any(row.visible for row in rows):
            await self._queue.settle(rows)
            return
        await self._reseed(record, rows)

    async def recover(self) -> None:
        """Finish what a crash cut off: rows of a turn that has ended are delivered and answered now."""
        for session_id in await self._queue.sessions():
            async with self._locks.hold(session_id):
                record = await self._turns.load(session_id)
                if record is not None and record.terminal:
                    await self.after_end(record)

    async def _park_beside(self, incoming: Incoming, record: TurnRecord) -> Delivered:
        """Park without the lock; when the turn ended meanwhile and has not taken the row, a new one is seeded."""
        row = await self._park(incoming, record)
        current = await self._turns.load(incoming.session_id)
        if current is not None and not current.terminal:
            return Delivered(current, merged=True, queued=True)
        async with self._locks.hold(incoming.session_id):
            current = await self._turns.load(incoming.session_id)
            if current is not None and not current.terminal:
                return Delivered(current, merged=True, queued=True)
            if current is None:
                raise invalid_request(f"session `{incoming.session_id}` was deleted while the message was on its way")
            waits = row.id in {waiting.id for waiting in await self._queue.waiting(incoming.session_id)}
            stopped = current.status == "cancelled" and current.turn_id == record.turn_id
            if not waits and not stopped:
                return Delivered(current, merged=True, queued=True)
            return Delivered(await self._start(incoming, current, parked=True), queued=True)

    async def _park(self, incoming: Incoming, record: TurnRecord) -> QueueRow:
        now = self._world.clock.now_ms()
        row_id = incoming.entry_id or f"q_{self._world.ids.hex()}"
        row = QueueRow(
            id=row_id,
            session_id=incoming.session_id,
            message=incoming.message,
            entry_id=incoming.entry_id or f"e_{row_id}",
            queued_at=await self._queue.next_time(incoming.session_id, now),
            fs_root=incoming.fs_root,
        )
        calls = [*incoming.before, self._queue.put(row), *incoming.after(record.turn_id)]
        self._world.reach(EntryPoint.BEFORE_PARK)
        with self._queue.room(row):
            try:
                await self._perform(calls, needed=len(incoming.before) + 1)
            except SequenceFailed as failed:
                self._queue.doubt()
                raise failed.answer() from failed
            self._queue.stored(row)
        self._world.reach(EntryPoint.AFTER_PARK)
        await self._events.message_queued(row, record)
        return row

    async def _merge(self, incoming: Incoming, record: TurnRecord) -> TurnRecord:
        """Append to a turn that waits for calls; its next step reads the message."""
        merged = record
        if incoming.fs_root is not None:
            options = replace(record.options, metadata=with_root(record.options.metadata, incoming.fs_root))
            merged = replace(record, options=options, updated_at=self._world.clock.now_ms())
        writes = self._turns.writes(merged) if merged is not record else []
        calls = [*incoming.before, self._append(incoming, record.turn_id), *writes, *incoming.after(record.turn_id)]
        self._world.reach(EntryPoint.BEFORE_MERGE)
        try:
            await self._perform(calls, needed=len(incoming.before) + 1 + len(writes))
        except SequenceFailed as failed:
            self._turns.forget(incoming.session_id)
            raise failed.answer() from failed
        self._turns.saved(merged)
        self._world.reach(EntryPoint.AFTER_MERGE)
        return merged

    async def _start(self, incoming: Incoming, prior: TurnRecord | None, *, parked: bool) -> TurnRecord:
        """Store the message (unless it is `parked`: step 0 drains it), the record and its first queue entry."""
        record = seed(
            incoming.session_id,
            incoming.turn_id,
            incoming.options,
            prior,
            now_ms=self._world.clock.now_ms(),
            preview=preview_of(incoming.message),
            default_root=incoming.default_root,
        )
        first = [] if parked else [*incoming.before, self._append(incoming, record.turn_id)]
        self._world.reach(EntryPoint.BEFORE_SEED)
        await self._store_and_enqueue(record, first, list(incoming.after(record.turn_id)))
        self._world.reach(EntryPoint.AFTER_SEED)
        return record

    async def _reseed(self, ended: TurnRecord, rows: Sequence[QueueRow]) -> None:
        newest = next(row for row in reversed(rows) if row.visible)
        options = _rooted(ended, rows).options
        now = self._world.clock.now_ms()
        turn_id = f"t_{self._world.ids.hex()}"
        record = seed(ended.session_id, turn_id, options, ended, now_ms=now, preview=preview_of(newest.message))
        self._world.reach(EntryPoint.BEFORE_RESEED)
        await self._store_and_enqueue(record, [], [], rows)
        self._world.reach(EntryPoint.AFTER_RESEED)
        try:
            await self._queue.settle(rows)
        except CodedError as error:
            log.warning("delivered_rows_not_deleted", session=ended.session_id, error=str(error))

    async def _store_and_enqueue(
        self, record: TurnRecord, first: list[Call], last: list[Call], answered: Sequence[QueueRow] = ()
    ) -> None:
        writes = self._turns.writes(record)
        needed = len(first) + len(writes) + 1
        try:
            await self._perform([*first, *writes, enqueue_call(record), *last], needed=needed)
        except SequenceFailed as failed:
            if failed.at < needed - 1:
                self._turns.forget(record.session_id)
            else:
                self._turns.saved(record)
                await self._queue.settle(answered)
                await self._unscheduled(record, failed.cause)
            raise failed.answer() from failed
        self._turns.saved(record)

    async def _perform(self, calls: list[Call], *, needed: int) -> None:
        """Make the calls; those from `needed` on may fail."""
        try:
            await perform(self._bus, self._world.clock, calls)
        except SequenceFailed as failed:
            if failed.at < needed:
                raise
            log.warning("idempotency_row_not_marked", error=str(failed.cause))

    def _append(self, incoming: Incoming, turn_id: str) -> Call:
        data: dict[str, Any] = {"session_id": incoming.session_id, "message": incoming.message}
        if incoming.entry_id is not None:
            data["entry_id"] = incoming.entry_id
        return Call("session::append", {**data, "origin": {"turn_id": turn_id}})


def _rooted(record: TurnRecord, rows: Sequence[QueueRow]) -> TurnRecord:
    roots = [row.fs_root for row in rows if row.fs_root is not None]
    if not roots:
        return record
    return replace(record, options=replace(record.options, metadata=with_root(record.options.metadata, roots[-1])))
