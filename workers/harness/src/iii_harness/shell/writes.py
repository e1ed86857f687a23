"""The core's writes as calls of the bus, made as one sequence (design: `Bus.sequence`; harness-loop 4, 8.2, 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iii_harness.decide.decision import Append, Enqueue, Project, Rewrite, Save, Snapshot, Write
from iii_harness.durable_sequence import SequenceFailed, perform
from iii_harness.record import TurnRecord
from iii_harness.shell.parts import Parts
from iii_harness.shell.paths import Paths
from iii_harness.turn_queue import enqueue_call
from iii_kit.bus import Call
from iii_kit.clients.session import set_status_call
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger

FINAL = ("usage", "stop_reason", "native_stop_reason", "error_kind", "error_message", "warnings", "provider")
"""Fields of a reply beside its content that its final write carries (siblings 3.5)."""

log = logger(__name__)


class Writes:
    """Makes the writes of a decision."""

    def __init__(self, parts: Parts, paths: Paths) -> None:
        self._parts = parts
        self._paths = paths
        self._scheduled: dict[str, tuple[str, int]] = {}
        self._shown: dict[str, Project] = {}

    async def make(self, record: TurnRecord, writes: Sequence[Write]) -> None:
        """Make `writes` in order; the record store and the path in memory learn what became of them."""
        batch = self._batch(record, writes)
        if not batch.calls:
            return
        try:
            answers = await perform(self._parts.bus, self._parts.world.clock, batch.calls)
        except SequenceFailed as failed:
            self._paths.drop(record.session_id)
            # Status and snapshot come last: the turn depends on neither, each is written anew with a later step.
            missing = len(batch.calls) - failed.at
            if missing > self._optional(record, writes):
                self._parts.turns.forget(record.session_id)
                raise failed.answer() from failed
            log.warning("not_written", function=failed.call.fn, session=record.session_id, error=str(failed.cause))
            self._made(record, batch)
            self._shown.pop(record.session_id, None)
        except BaseException:
            self._paths.drop(record.session_id)
            self._parts.turns.forget(record.session_id)
            raise
        else:
            if batch.entries:
                self._paths.wrote(record.session_id, batch.calls, answers, batch.entries)
            self._made(record, batch)

    async def preparing(self, record: TurnRecord) -> None:
        """Show that a context is prepared (6.2 step 4): sent and forgotten; whatever comes next is shown anew."""
        self._shown.pop(record.session_id, None)
        call = set_status_call(record.session_id, "working", "preparing context")
        try:
            await self._parts.bus.void(call.fn, call.data, opts=self._parts.session_opts())
        except EpochEnded:
            raise
        except BusError as error:
            log.warning("session_status_not_written", session=record.session_id, error=str(error))

    def scheduled(self, record: TurnRecord) -> bool:
        """True when this process has enqueued the record's current step."""
        return self._scheduled.get(record.session_id) == (record.turn_id, record.step)

    def ended(self, session_id: str) -> None:
        """Forget a session whose turn is over."""
        self._scheduled.pop(session_id, None)
        self._shown.pop(session_id, None)

    def renewed(self) -> None:
        """A new connection begins: what the old one enqueued may be lost."""
        self._scheduled.clear()
        self._shown.clear()

    def _made(self, record: TurnRecord, batch: _Batch) -> None:
        """Remember what was written."""
        if batch.saved is not None:
            self._parts.turns.saved(batch.saved)
        if batch.enqueued is not None:
            self._scheduled[record.session_id] = (batch.enqueued.turn_id, batch.enqueued.step)
        if batch.status is not None:
            self._shown[record.session_id] = batch.status

    def _is_shown(self, record: TurnRecord, status: Project) -> bool:
        """True for a status that the session has from the step before; a stop writes its own and ends the turn."""
        return self._shown.get(record.session_id) == status and not record.abort

    def _optional(self, record: TurnRecord, writes: Sequence[Write]) -> int:
        """How many calls at the end nothing depends on."""
        count = 0
        for write in reversed(writes):
            if not isinstance(write, (Project, Snapshot)):
                break
            count += isinstance(write, Snapshot) or not self._is_shown(record, write)
        return count

    def _batch(self, record: TurnRecord, writes: Sequence[Write]) -> _Batch:
        """The calls that make `writes`; none for a status that is shown."""
        opts = self._parts.session_opts()
        session_id, origin = record.session_id, {"turn_id": record.turn_id}
        batch = _Batch()
        calls = batch.calls
        for write in writes:
            if isinstance(write, Append):
                batch.entries.append(len(calls))
                calls.append(Call("session::append", _entry(session_id, write, origin), opts=opts))
            elif isinstance(write, Save):
                batch.saved = write.record
                calls += self._parts.turns.writes(write.record)
            elif isinstance(write, Rewrite):
                batch.entries.append(len(calls))
                calls.append(Call("session::update-message", _final(session_id, write, origin), opts=opts))
            elif isinstance(write, Enqueue):
                batch.enqueued = write.record
                calls.append(enqueue_call(write.record))
            elif isinstance(write, Project):
                if not self._is_shown(record, write):
                    batch.status = write
                    status = set_status_call(session_id, write.status, write.reason)
                    calls.append(Call(status.fn, status.data, opts=opts))
            else:
                calls.append(self._parts.contexts.put(session_id, write.value))
        return batch


class _Batch:
    """The calls of one sequence, and what they mean."""

    __slots__ = ("calls", "enqueued", "entries", "saved", "status")

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.entries: list[int] = []
        """Which of the calls write the transcript."""
        self.saved: TurnRecord | None = None
        self.enqueued: TurnRecord | None = None
        self.status: Project | None = None


def _entry(session_id: str, write: Append, origin: dict[str, str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"session_id": session_id, "entry_id": write.entry_id, "origin": origin}
    if write.message is not None:
        entry["message"] = write.message
    else:
        entry["custom"] = {"custom_type": write.custom_type, "data": write.data}
    return entry


def _final(session_id: str, write: Rewrite, origin: dict[str, str]) -> dict[str, Any]:
    message = write.message
    content = message.get("content")
    fields: dict[str, Any] = {
        "session_id": session_id,
        "entry_id": write.entry_id,
        "content": content if isinstance(content, list) else [],
        "origin": origin,
    }
    for name in FINAL:
        value = message.get(name)
        if value is not None:
            fields[name] = value
    return fields
