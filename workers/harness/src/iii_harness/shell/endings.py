"""The end of a turn (harness-loop 11): write it, tell it, deliver what is parked. The session's lock is held."""

from __future__ import annotations

from collections.abc import Sequence

from iii_harness.decide import ending
from iii_harness.decide.decision import Decision, Facts, Save, View, Write
from iii_harness.decide.failure import ENQUEUE_FAILED, INTERNAL, Failure, own_failure
from iii_harness.record import TurnRecord, TurnStatus
from iii_harness.shell.parts import Parts
from iii_harness.shell.paths import Paths
from iii_harness.shell.points import LoopPoint
from iii_harness.shell.step_span import mark_failure
from iii_harness.shell.writes import Writes
from iii_kit.errors import BusError


class Endings:
    """Finalises turns, for the step and for those who end a turn that no step will see."""

    def __init__(self, parts: Parts, writes: Writes, paths: Paths) -> None:
        self._parts = parts
        self._writes = writes
        self._paths = paths

    async def cancel(self, record: TurnRecord) -> None:
        """End a live turn as cancelled."""
        await self._perform(ending.cancelled(record, [], View(), self._facts()), "stopped")

    async def unscheduled(self, record: TurnRecord, error: BusError) -> None:
        """End a fresh turn whose first step could not be enqueued."""
        await self._fail(record, own_failure(ENQUEUE_FAILED, "scheduling", str(error)))

    async def broken(self, record: TurnRecord, error: BaseException) -> TurnStatus:
        """End a turn whose step failed for a reason that running it again will not change; a stopped one is cancelled.

        Returns how it ended.
        """
        if record.abort or self._parts.signals.fired(record.turn_id):
            await self.cancel(record)
            return "cancelled"
        await self._fail(record, own_failure(INTERNAL, "execution", str(error)))
        return "failed"

    async def tell(self, record: TurnRecord) -> None:
        """Tell the end of a turn whose terminal record is stored; telling it again changes nothing."""
        await self.end(record, [], ending.reason_of(record))

    async def end(self, record: TurnRecord, writes: Sequence[Write], reason: str | None) -> None:
        """Make the last writes of a turn; then tell its end and deliver what is parked."""
        reach = self._parts.world.reach
        if writes:
            mark_failure(record, writes)
            reach(LoopPoint.BEFORE_END)
            if await self._parts.delivery.parked(record.session_id):
                last = next(index for index, write in enumerate(writes) if isinstance(write, Save))
                await self._writes.make(record, writes[:last])
                await self._parts.delivery.show_parked(record)
                writes = writes[last:]
            await self._writes.make(record, writes)
            reach(LoopPoint.AFTER_END)
        self._parts.signals.clear(record.turn_id)
        self._writes.ended(record.session_id)
        self._paths.drop(record.session_id)
        await self._parts.events.turn_completed(record, reason)
        reach(LoopPoint.TOLD)
        await self._parts.delivery.after_end(record)
        reach(LoopPoint.SETTLED)

    async def _fail(self, record: TurnRecord, failure: Failure) -> None:
        await self._perform(ending.failed(record, [], failure, View(), self._facts()), failure.summary)

    async def _perform(self, decision: Decision, reason: str) -> None:
        assert decision.record is not None, "an ending keeps its record"
        await self.end(decision.record, decision.writes, reason)

    def _facts(self) -> Facts:
        return Facts(now_ms=self._parts.world.clock.now_ms())
