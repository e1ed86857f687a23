"""Parked messages: rows of `harness_queue` and their order (harness-loop 4, 10.2, 10.4).

One harness owns the scope, so an index in memory, read once per connection, is exact and a step asks nothing of the
store. A write whose outcome is unknown makes the index doubtful: the next use reads the scope anew. A row leaves the
store only after its entry is in the transcript, and counts as parked until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from iii_harness.decide.canonical import size
from iii_harness.errors import dependency, invalid_request, state_failed
from iii_harness.locks import Locks
from iii_harness.state_rows import StateRows
from iii_kit.bus import Call, Caller, Json
from iii_kit.clients.session import append_call
from iii_kit.errors import BusError, EpochEnded

SCOPE = "harness_queue"

MOST_BYTES = 32 * 1024 * 1024
"""JSON of all rows together: half of what one answer can carry."""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A message that waits for the running turn."""

    id: str
    session_id: str
    message: dict[str, Any]
    entry_id: str
    queued_at: int
    origin: dict[str, Any] | None = None
    fs_root: str | None = None

    @property
    def visible(self) -> bool:
        """True when a model will read it: custom messages are shown and never sent."""
        return self.message.get("role") != "custom"

    @property
    def key(self) -> str:
        """Its key in the scope."""
        return f"{self.session_id}:{self.id}"

    @property
    def order(self) -> tuple[int, str]:
        """Its place in the queue of the session."""
        return (self.queued_at, self.id)

    def append(self, turn_id: str | None) -> Call:
        """The call that brings it into the transcript; repeats change nothing. `turn_id` completes the origin."""
        origin = dict(self.origin or {})
        if turn_id is not None:
            origin.setdefault("turn_id", turn_id)
        return append_call(self.session_id, entry_id=self.entry_id, message=self.message, origin=origin or None)

    def public(self) -> dict[str, Any]:
        """As `harness::status` shows it: without the filesystem root."""
        shown = dump_row(self)
        shown.pop("fs_root", None)
        return shown


def parse_row(value: Json) -> QueueRow:
    """A stored row; raises when it is not one."""
    fields = cast("dict[str, Any]", value)
    return QueueRow(
        id=fields["id"],
        session_id=fields["session_id"],
        message=dict(fields["message"]),
        entry_id=fields["entry_id"],
        queued_at=int(fields["queued_at"]),
        origin=fields.get("origin"),
        fs_root=fields.get("fs_root"),
    )


def dump_row(row: QueueRow) -> dict[str, Any]:
    """The stored form of a row."""
    fields: dict[str, Any] = {
        "id": row.id,
        "session_id": row.session_id,
        "message": row.message,
        "entry_id": row.entry_id,
        "queued_at": row.queued_at,
    }
    if row.origin is not None:
        fields["origin"] = row.origin
    if row.fs_root is not None:
        fields["fs_root"] = row.fs_root
    return fields


class QueueRows:
    """The index over `harness_queue`, and the writes that keep it true.

    Changes of one session's rows exclude each other, so that a message is edited, taken back or delivered, never two
    of them. The order of locks: session, then its rows.
    """

    def __init__(self, bus: Caller, rows: StateRows[QueueRow]) -> None:
        self._bus = bus
        self._rows = rows
        self._by_session: dict[str, dict[str, QueueRow]] = {}
        self._delivered: set[str] = set()
        self._known = False
        self._loading = asyncio.Lock()
        self._meanwhile: list[tuple[QueueRow, bool]] = []
        self._changing = Locks()
        self._last = 0
        self._sizes: dict[str, int] = {}
        self._promised: dict[str, int] = {}

    def renewed(self) -> None:
        """A new connection begins: what is stored is read anew at the next use."""
        self._known = False
        self._delivered.clear()

    async def of(self, session_id: str) -> list[QueueRow]:
        """The stored rows of a session, oldest first: those that wait, and those delivered but not settled."""
        if not self._known:
            await self._load()
        rows = self._by_session.get(session_id)
        return sorted(rows.values(), key=lambda row: row.order) if rows else []

    async def waiting(self, session_id: str) -> list[QueueRow]:
        """The rows of a session that nobody has delivered yet, oldest first."""
        return [row for row in await self.of(session_id) if row.key not in self._delivered]

    async def sessions(self) -> list[str]:
        """The sessions that have parked rows."""
        if not self._known:
            await self._load()
        return list(self._by_session)

    async def next_time(self, session_id: str, now_ms: int) -> int:
        """The `queued_at` of a new row: later than every earlier one, so that it alone gives the order."""
        parked = await self.of(session_id)
        self._last = max(now_ms, self._last + 1, *(row.queued_at + 1 for row in parked))
        return self._last

    def put(self, row: QueueRow) -> Call:
        """The call that stores a row, for a sequence; tell the outcome with `stored` or `doubt`."""
        return self._rows.put(row.key, row)

    @contextmanager
    def room(self, row: QueueRow) -> Generator[None]:
        """Hold room for a row that is being written. Raises `harness/invalid_request` when there is none.

        All rows are read in one answer after a restart; more than one can carry would be lost to every session.
        """
        mine = size(dump_row(row))
        others = {**self._sizes, **self._promised}
        others.pop(row.key, None)
        if sum(others.values()) + mine > MOST_BYTES:
            raise invalid_request(
                f"`message`: messages of {MOST_BYTES >> 20} MiB wait for running turns already; send it again later"
            )
        self._promised[row.key] = mine
        try:
            yield
        finally:
            self._promised.pop(row.key, None)

    def stored(self, row: QueueRow) -> None:
        """The write of `row` is acknowledged."""
        self._note(row, stored=True)

    def doubt(self) -> None:
        """A write may or may not have happened: what is stored is read anew at the next use."""
        self._known = False

    async def edit(self, session_id: str, entry_id: str, message: dict[str, Any]) -> QueueRow | None:
        """Replace the message of a parked row in its place; None when it is no longer parked."""
        async with self._changing.hold(session_id):
            row = await self._find(session_id, entry_id)
            if row is None:
                return None
            edited = replace(row, message=message)
            with self.room(edited):
                await self._write([self.put(edited)], "edit a parked message")
                self.stored(edited)
            return edited

    async def remove(self, session_id: str, entry_id: str) -> bool:
        """Take a parked row back; False when it is no longer parked."""
        async with self._changing.hold(session_id):
            row = await self._find(session_id, entry_id)
            if row is None:
                return False
            await self._write([self._rows.drop(row.key)], "take a message back")
            self._note(row, stored=False)
            return True

    async def drain(self, session_id: str, turn_id: str) -> list[QueueRow]:
        """Bring every parked message into the transcript and delete its row; returns them, oldest first."""
        if self._known and session_id not in self._by_session:
            return []
        async with self._changing.hold(session_id):
            rows = await self.of(session_id)
            if rows:
                await self._append(rows, turn_id, [self._rows.drop(row.key) for row in rows])
                self._gone(rows)
            return rows

    async def deliver(self, session_id: str, turn_id: str) -> list[QueueRow]:
        """Bring the parked messages that are not there yet into the transcript and keep their rows.

        The rows are the memory of what a following turn must answer; `settle` deletes them once that turn is stored.
        """
        if self._known and session_id not in self._by_session:
            return []
        async with self._changing.hold(session_id):
            rows = await self.waiting(session_id)
            if rows:
                await self._append(rows, turn_id, [])
                self._delivered.update(row.key for row in rows)
            return rows

    async def settle(self, rows: Sequence[QueueRow]) -> None:
        """Delete the rows of delivered messages."""
        if rows:
            await self._write([self._rows.drop(row.key) for row in rows], "delete delivered messages")
            self._gone(rows)

    async def purge(self, session_id: str) -> None:
        """Delete every row of a session that is gone."""
        async with self._changing.hold(session_id):
            await self.settle(await self.of(session_id))

    async def _find(self, session_id: str, entry_id: str) -> QueueRow | None:
        return next((row for row in await self.waiting(session_id) if row.entry_id == entry_id), None)

    async def _append(self, rows: Sequence[QueueRow], turn_id: str, then: list[Call]) -> None:
        try:
            await self._bus.sequence([*(row.append(turn_id) for row in rows), *then])
        except EpochEnded:
            raise
        except BusError as error:
            self.doubt()
            raise dependency("session::append", error) from error

    async def _write(self, calls: list[Call], doing: str) -> None:
        try:
            await self._bus.sequence(calls)
        except EpochEnded:
            raise
        except BusError as error:
            self.doubt()
            raise state_failed(doing, error) from error

    def _gone(self, rows: Sequence[QueueRow]) -> None:
        for row in rows:
            self._note(row, stored=False)

    def _note(self, row: QueueRow, *, stored: bool) -> None:
        if self._loading.locked():
            self._meanwhile.append((row, stored))
        self._apply(row, stored=stored)

    def _apply(self, row: QueueRow, *, stored: bool) -> None:
        rows = self._by_session.setdefault(row.session_id, {})
        if stored:
            rows[row.id] = row
            self._sizes[row.key] = size(dump_row(row))
        else:
            self._sizes.pop(row.key, None)
            rows.pop(row.id, None)
            self._delivered.discard(row.key)
        if not rows:
            del self._by_session[row.session_id]

    async def _load(self) -> None:
        async with self._loading:
            if self._known:
                return
            self._meanwhile.clear()
            stored = await self._rows.list()
            self._by_session = {}
            self._sizes = {}
            for row in stored:
                self._apply(row, stored=True)
            for row, kept in self._meanwhile:
                self._apply(row, stored=kept)
            self._delivered &= {row.key for rows in self._by_session.values() for row in rows.values()}
            self._known = True
