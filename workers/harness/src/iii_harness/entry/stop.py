"""`harness::stop`: tell a running turn to end, durably and at once (harness-loop 11.4).

The signal in this process ends what waits now, the record's `abort` flag ends what runs after a crash, and a turn that
no step will ever see is finalised or enqueued again right here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from iii_contracts.harness.turn import StopRequest
from iii_harness.durable_sequence import SequenceFailed, perform
from iii_harness.entry.points import EntryPoint
from iii_harness.locks import Locks
from iii_harness.projection import SessionStatus
from iii_harness.record import TurnRecord
from iii_harness.signals import CancelSignals, ExecutingSteps
from iii_harness.turn_queue import enqueue_call
from iii_harness.turn_store import TurnStore
from iii_kit.bus import Caller, Invocation, Opts
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger
from iii_kit.world import World

log = logger(__name__)

ABORT_TIMEOUT_MS = 5_000


class Stopper:
    """Serves `harness::stop`."""

    def __init__(
        self,
        bus: Caller,
        world: World,
        turns: TurnStore,
        locks: Locks,
        signals: CancelSignals,
        executing: ExecutingSteps,
        status: SessionStatus,
        cancel: Callable[[TurnRecord], Awaitable[None]],
    ) -> None:
        """`cancel` finalises a live turn as cancelled; the session's lock is held."""
        self._bus = bus
        self._world = world
        self._turns = turns
        self._locks = locks
        self._signals = signals
        self._executing = executing
        self._status = status
        self._cancel = cancel

    async def stop(self, request: StopRequest, _: Invocation) -> dict[str, Any]:
        """Ask the session's turn to stop; true while it still runs."""
        session_id = request.session_id
        record = await self._turns.load(session_id)
        foreign = record is not None and request.turn_id is not None and record.turn_id != request.turn_id
        if record is None or foreign or record.terminal:
            self._status.repair_soon(session_id)
            return {"stopping": False}
        if record.abort:
            return {"stopping": True}
        self._signals.fire(record.turn_id)
        await self._abort_stream(record)
        async with self._locks.hold(session_id):
            return {"stopping": await self._mark(session_id, record.turn_id)}

    async def _mark(self, session_id: str, turn_id: str) -> bool:
        """Make the stop durable, and see to it that somebody acts on it. The lock is held."""
        record = await self._turns.load(session_id)
        if record is None or record.turn_id != turn_id or record.terminal:
            self._signals.clear(turn_id)
            return record is not None and record.turn_id == turn_id
        marked = replace(record, abort=True, updated_at=self._world.clock.now_ms())
        self._world.reach(EntryPoint.BEFORE_ABORT)
        await self._turns.save(marked)
        self._world.reach(EntryPoint.AFTER_ABORT)
        if marked.status == "awaiting_functions":
            await self._cancel(marked)
            return True
        await self._status.working(session_id, "stopping")
        if not self._executing.executing(session_id):
            await self._wake(marked)
        return True

    async def _wake(self, record: TurnRecord) -> None:
        try:
            await perform(self._bus, self._world.clock, [enqueue_call(record)])
        except SequenceFailed as failed:
            log.warning("stopped_turn_not_enqueued", session=record.session_id, error=str(failed.cause))

    async def _abort_stream(self, record: TurnRecord) -> None:
        if record.stream_request_id is None:
            return
        request = {"request_id": record.stream_request_id}
        try:
            await self._bus.call("router::abort", request, opts=Opts(timeout_ms=ABORT_TIMEOUT_MS))
        except EpochEnded:
            raise
        except BusError as error:
            log.info("stream_not_aborted", session=record.session_id, error=str(error))
