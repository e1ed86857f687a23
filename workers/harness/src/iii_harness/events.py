"""The trigger types the harness emits: ready, turn-started, turn-completed, message-queued (harness-loop 20).

Events are sent and forgotten: a delivery that fails is logged and never fails what it tells of. Consumers treat
`(session_id, turn_id)` as the key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from iii_contracts.harness import events as specs
from iii_harness.queue_rows import QueueRow
from iii_harness.record import TurnRecord
from iii_kit.bindings import Bindings, Bound, event
from iii_kit.bus import Bus, Call
from iii_kit.errors import BusError
from iii_kit.logs import logger
from iii_kit.world import Clock

log = logger(__name__)


class HarnessEvents:
    """Provider of the four trigger types."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._ready_at: int | None = None
        self._telling: set[asyncio.Task[None]] = set()
        self._ready = Bindings(specs.READY, self._on_ready_bound)
        self._started = Bindings(specs.TURN_STARTED)
        self._completed = Bindings(specs.TURN_COMPLETED)
        self._queued = Bindings(specs.MESSAGE_QUEUED)

    def provide(self) -> None:
        """Register the trigger types; must come before the functions, so that no binding is lost."""
        for bindings in (self._ready, self._started, self._completed, self._queued):
            self._bus.provide(bindings.spec, bindings)

    async def ready(self) -> None:
        """`harness::ready`: from now on a binding made later is told at once."""
        self._ready_at = self._clock.now_ms()
        await self._tell(self._ready.fire(self._ready_payload(self._ready_at)))

    def closed(self) -> None:
        """No longer ready: later bindings are told nothing."""
        self._ready_at = None

    async def turn_started(self, record: TurnRecord) -> None:
        """`harness::turn-started`."""
        payload = {
            "session_id": record.session_id,
            "turn_id": record.turn_id,
            "timestamp": self._clock.now_ms(),
            "depth": record.depth,
            "message_preview": record.message_preview,
            **_lineage(record),
        }
        await self._tell(self._started.fire(_present(payload), _concerns(record)))

    async def turn_completed(self, record: TurnRecord, reason: str | None) -> None:
        """`harness::turn-completed` of a terminal record; the same content however often it is told."""
        payload = {
            "session_id": record.session_id,
            "turn_id": record.turn_id,
            "status": record.status,
            "terminal": True,
            "timestamp": record.updated_at,
            "result": record.result,
            "result_error": record.result_error,
            "reason": reason,
            **_lineage(record),
            "context": record.context_snapshot,
        }
        await self._tell(self._completed.fire(_present(payload), _concerns(record)))

    async def message_queued(self, row: QueueRow, record: TurnRecord | None) -> None:
        """`harness::message-queued`: a message waits, or was changed; a pointer without the text."""
        payload = {
            "session_id": row.session_id,
            "entry_id": row.entry_id,
            "queued_at": row.queued_at,
            "timestamp": self._clock.now_ms(),
        }
        matches = _of_session(row.session_id) if record is None else _concerns(record)
        await self._tell(self._queued.fire(payload, matches))

    async def _tell(self, calls: Sequence[Call]) -> None:
        for call in calls:
            try:
                await self._bus.void(call.fn, call.data, opts=call.opts)
            except BusError as error:
                log.warning("event_not_sent", function=call.fn, error=str(error))

    def _ready_payload(self, when: int) -> dict[str, Any]:
        return {"status": "ready", "timestamp": when}

    def _on_ready_bound(self, bound: Bound) -> None:
        if self._ready_at is None:
            return
        telling = asyncio.ensure_future(self._tell([event(bound.binding, self._ready_payload(self._ready_at))]))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)


def _present(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if value is not None}


def _lineage(record: TurnRecord) -> dict[str, Any]:
    parent = None if record.parent is None else msgspec.to_builtins(record.parent)
    return {"parent": parent, "parent_session_id": record.display_parent_session_id}


def _concerns(record: TurnRecord) -> Callable[[specs.TurnFilter], bool]:
    """Both filters given, both must match; a parent is the caller's session or the one it is shown under."""
    parents = {record.display_parent_session_id, record.parent.session_id if record.parent else None}

    def matches(config: specs.TurnFilter) -> bool:
        session = config.session_id in (None, record.session_id)
        return session and (config.parent_session_id is None or config.parent_session_id in parents)

    return matches


def _of_session(session_id: str) -> Callable[[specs.TurnFilter], bool]:
    def matches(config: specs.TurnFilter) -> bool:
        return config.session_id in (None, session_id) and config.parent_session_id is None

    return matches
