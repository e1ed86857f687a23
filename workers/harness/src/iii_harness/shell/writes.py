"""The core's writes as calls of the bus, made as one sequence (design: `Bus.sequence`; harness-loop 4, 8.2, 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from iii_harness.decide.decision import Append, Enqueue, Project, Rewrite, Save, Snapshot, Write
from iii_harness.durable_sequence import SequenceFailed, perform
from iii_harness.record import TurnRecord
from iii_harness.shell.parts import Parts
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

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._scheduled: dict[str, tuple[str, int]] = {}
        self._shown: dict[str, Project] = {}

    async def make(self, record: TurnRecord, writes: Sequence[Write]) -> None:
        """Make `writes` in order; the record store learns what became of the record."""
        writes = [write for write in writes if not self._is_shown(record, write)]
        if not writes:
            return
        calls = [call for write in writes for call in self._calls(record, write)]
        try:
            await perform(self._parts.bus, self._parts.world.clock, calls)
        except SequenceFailed as failed:
            # Status and snapshot come last: the turn depends on neither, each is written anew with a later step.
            missing = len(calls) - failed.at
            if missing > _optional(writes):
                self._parts.turns.forget(record.session_id)
                raise failed.answer() from failed
            log.warning("not_written", function=failed.call.fn, session=record.session_id, error=str(failed.cause))
            writes = writes[:-missing]
        except BaseException:
            self._parts.turns.forget(record.session_id)
            raise
        for write in writes:
            if isinstance(write, Save):
                self._parts.turns.saved(write.record)
            elif isinstance(write, Enqueue):
                self._scheduled[record.session_id] = (write.record.turn_id, write.record.step)
            elif isinstance(write, Project):
                self._shown[record.session_id] = write

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

    def _is_shown(self, record: TurnRecord, write: Write) -> bool:
        """True for a status that the session has from the step before; a stop writes its own and ends the turn."""
        return isinstance(write, Project) and not record.abort and self._shown.get(record.session_id) == write

    def _calls(self, record: TurnRecord, write: Write) -> list[Call]:
        opts = self._parts.session_opts()
        session_id, origin = record.session_id, {"turn_id": record.turn_id}
        match write:
            case Append(entry_id, message, custom_type, data):
                entry = {"message": message} if message is not None else {"custom": _custom(custom_type, data)}
                fields = {"session_id": session_id, "entry_id": entry_id, **entry, "origin": origin}
                return [Call("session::append", fields, opts=opts)]
            case Rewrite(entry_id, message):
                return [Call("session::update-message", _final(session_id, entry_id, message, origin), opts=opts)]
            case Save(saved):
                return self._parts.turns.writes(saved)
            case Enqueue(ahead):
                return [enqueue_call(ahead)]
            case Project(status, reason):
                fields = {"session_id": session_id, "status": status}
                return [
                    Call("session::set-status", fields if reason is None else {**fields, "reason": reason}, opts=opts)
                ]
            case Snapshot(value):
                return [self._parts.contexts.put(session_id, value)]
            case _:
                assert_never(write)


def _optional(writes: Sequence[Write]) -> int:
    """How many writes at the end nothing depends on; each is one call."""
    count = 0
    for write in reversed(writes):
        if not isinstance(write, (Project, Snapshot)):
            break
        count += 1
    return count


def _custom(custom_type: str, data: Any) -> dict[str, Any]:
    return {"custom_type": custom_type, "data": data}


def _final(session_id: str, entry_id: str, message: dict[str, Any], origin: dict[str, str]) -> dict[str, Any]:
    content = message.get("content")
    fields: dict[str, Any] = {
        "session_id": session_id,
        "entry_id": entry_id,
        "content": content if isinstance(content, list) else [],
        "origin": origin,
    }
    fields.update((name, message[name]) for name in FINAL if message.get(name) is not None)
    return fields
