"""One durable step (harness-loop 6): decide, write, do what was decided, and tell the core what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from iii_contracts.harness.turn import TurnRequest
from iii_harness.decide import entry_ids
from iii_harness.decide.core import decide
from iii_harness.decide.decision import (
    Decision,
    Delivered,
    Drain,
    Drained,
    End,
    Event,
    Facts,
    Generated,
    Invoke,
    Park,
    Prepare,
    Ready,
    Reload,
    Reloaded,
    Returned,
    Rewrite,
    Stream,
    Unfit,
    View,
    Write,
)
from iii_harness.decide.plan import calls_of
from iii_harness.ports import Gate, Item, Message
from iii_harness.record import TurnRecord, TurnStatus
from iii_harness.shell.dispatch import Dispatch
from iii_harness.shell.endings import Endings
from iii_harness.shell.generation import Generation
from iii_harness.shell.parts import Parts
from iii_harness.shell.paths import Paths
from iii_harness.shell.points import LoopPoint
from iii_harness.shell.preparation import Preparation, Prepared
from iii_harness.shell.step_span import mark_recovery
from iii_harness.shell.writes import Writes
from iii_kit.errors import CodedError


class Outcome(msgspec.Struct, frozen=True):
    """What became of a delivery."""

    status: TurnStatus
    next_step: int | None = None
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class Tools:
    """What a step is done with."""

    parts: Parts
    paths: Paths
    writes: Writes
    endings: Endings
    preparation: Preparation
    generation: Generation
    dispatch: Dispatch


class Step:
    """One delivery of one step. `retried`: it runs again in place; `last_try`: it will not run in place again."""

    def __init__(self, tools: Tools, request: TurnRequest, *, retried: bool, last_try: bool) -> None:
        self._tools = tools
        self._parts = tools.parts
        self._request = request
        self._rerun = retried
        self._last_try = last_try
        self._record: TurnRecord | None = None
        self._view = View()
        self._gate: Gate | None = None
        self._prepared: Prepared | None = None
        self._now_ms = tools.parts.world.clock.now_ms
        self._steered = False
        self._max_result_bytes = tools.parts.limits().max_result_bytes
        self._outcome = Outcome("running", skipped=True)

    async def run(self) -> Outcome:
        """Run the step; the session's lock is free while the model answers."""
        session_id = self._request.session_id
        locks = self._parts.locks
        async with locks.hold(session_id):
            self._record = await self._parts.turns.load(session_id)
            streams = await self._go(Delivered(self._request.turn_id, self._request.step))
        if not streams:
            return self._outcome
        generated = await self._generate()
        self._parts.world.reach(LoopPoint.STREAMED)
        async with locks.hold(session_id):
            if await self._still_ours():
                await self._listen(generated.message)
                await self._go(generated)
            else:
                self._tools.paths.drop(session_id)
        return self._outcome

    async def _go(self, event: Event) -> bool:
        """Follow the decisions until the model is asked (True) or the delivery is done."""
        while True:
            decision = decide(self._record, self._view, event, self._facts(event))
            then = decision.next
            if isinstance(then, End):
                record = _present(decision.record)
                await self._tools.endings.end(record, decision.writes, then.reason)
                self._outcome = Outcome(record.status)
                return False
            if decision.writes:
                await self._write(_present(decision.record), decision.writes, event)
            if isinstance(then, Park):
                self._parked(decision, skipped=then.skipped)
                return False
            if not isinstance(then, Stream):
                event = await self._follow(then)
            elif self._tools.paths.missed(self._request.session_id):
                # Somebody else's entry came before the reply: the request is made again, with it.
                self._tools.paths.drop(self._request.session_id)
                event = Drained()
            else:
                return True

    async def _follow(self, then: Invoke | Drain | Prepare | Reload) -> Event:
        """Do what a decision says next; the event that follows."""
        if isinstance(then, Invoke):
            return await self._invoke(then)
        if isinstance(then, Drain):
            return await self._drain()
        if isinstance(then, Prepare):
            return await self._prepare()
        return await self._reload()

    async def _write(self, record: TurnRecord, writes: Sequence[Write], event: Event) -> None:
        """Make the writes of a decision, and go on with its record."""
        before, after = _points(event)
        if record.transient_resumes:
            mark_recovery(record, writes)
        self._parts.world.reach(before)
        await self._tools.writes.make(record, writes)
        self._record = record
        if isinstance(event, Generated):
            reply = next(write.message for write in writes if isinstance(write, Rewrite))
            self._view = replace(self._view, message=reply)
        self._parts.world.reach(after)

    def _parked(self, decision: Decision, *, skipped: bool) -> None:
        record = decision.record
        if skipped or record is None:
            self._outcome = Outcome(record.status if record is not None else "running", skipped=True)
        else:
            self._outcome = Outcome(record.status, next_step=record.step)

    async def _drain(self) -> Event:
        record = _present(self._record)
        self._parts.world.reach(LoopPoint.STEP_TAKEN)
        self._rerun = self._rerun or record.stream_request_id == record.request_id
        if self._rerun:
            self._tools.paths.drop(record.session_id)
        if await self._parts.delivery.parked(record.session_id) and not await self._asked_already(record):
            record = self._record = await self._parts.delivery.drain(record)
            self._tools.paths.doubt(record.session_id)
        if record.turn_count == 0:
            await self._begun(record)
        return Drained()

    async def _begun(self, record: TurnRecord) -> None:
        """The first step tells that the turn has begun; later ones prepare too quickly for it to be seen."""
        await self._tools.writes.preparing(record)
        if record.step == 0:
            await self._parts.events.turn_started(record)

    async def _asked_already(self, record: TurnRecord) -> bool:
        """True when this step ran before and has the entry of its reply, be it empty: a message that is delivered now
        would stand behind a reply that has read it, or between a reply and its results."""
        return self._rerun and await self._own_reply(record) is not None

    async def _prepare(self) -> Ready | Unfit:
        self._prepared = await self._tools.preparation.of_step(_present(self._record))
        self._gate = self._prepared.gate
        self._view = View(leaf=self._prepared.leaf, context=self._prepared.context)
        return self._prepared.ready

    async def _reload(self) -> Reloaded:
        """Read back the reply of a step whose generation is consumed, and which of its results exist."""
        record = _present(self._record)
        self._parts.world.reach(LoopPoint.STEP_TAKEN)
        self._tools.paths.drop(record.session_id)
        path = await self._tools.paths.load(record.session_id)
        reply = _message_of(path, entry_ids.assistant(record.turn_id, record.step))
        if reply is None or record.generated is None:
            raise CodedError("harness/state", f"the reply of step {record.step} is not on the session's active path")
        message = {**reply, "stop_reason": record.generated.stop_reason}
        self._gate = self._parts.surfaces.gate(record)
        self._view = View(message, record.watermark_entry_id, frozenset(item.entry_id for item in path))
        await self._listen(message)
        return Reloaded(message)

    async def _generate(self) -> Generated:
        record, prepared = _present(self._record), self._prepared
        assert prepared is not None, "a stream follows a preparation"
        return await self._tools.generation.run(record, prepared.request, again=self._rerun, last=self._last_try)

    async def _still_ours(self) -> bool:
        """Re-read the record after the stream: others may have changed what they may, or ended the turn."""
        mine = _present(self._record)
        self._record = await self._parts.turns.load(mine.session_id)
        return (
            self._record is not None
            and self._record.turn_id == mine.turn_id
            and self._record.step == mine.step
            and not self._record.terminal
        )

    async def _invoke(self, then: Invoke) -> Event:
        record, gate = _present(self._record), self._gate
        assert gate is not None, "a call is planned under a policy"
        self._parts.world.reach(LoopPoint.BEFORE_INVOKE)
        event = await self._tools.dispatch.invoke(record, then, gate)
        self._parts.world.reach(LoopPoint.INVOKED)
        return event

    def _facts(self, event: Event) -> Facts:
        """What the decision about `event` needs to know."""
        record = self._record
        stopped = record is not None and self._parts.signals.fired(record.turn_id)
        scheduled = record is None or not isinstance(event, Delivered) or self._tools.writes.scheduled(record)
        return Facts(self._now_ms(), stopped, self._steered, scheduled, self._max_result_bytes, self._gate)

    async def _listen(self, reply: Message) -> None:
        """Look whether a user message waits (10.5); only where the reply would end the turn."""
        if calls_of(reply.get("content")):
            return
        record = _present(self._record)
        parked = await self._parts.delivery.parked(record.session_id)
        self._steered = any(row.visible for row in parked) or await self._tools.paths.spoken_after(
            record.session_id, self._view.leaf
        )

    async def _own_reply(self, record: TurnRecord) -> Message | None:
        path = await self._tools.paths.load(record.session_id)
        return _message_of(path, entry_ids.assistant(record.turn_id, record.step))


def _points(event: Event) -> tuple[LoopPoint, LoopPoint]:
    """The crash points around the writes that come of an event."""
    if isinstance(event, Ready):
        return LoopPoint.BEFORE_ASK, LoopPoint.AFTER_ASK
    if isinstance(event, Returned):
        return LoopPoint.BEFORE_RESULT, LoopPoint.AFTER_RESULT
    return LoopPoint.BEFORE_REPLY, LoopPoint.AFTER_REPLY


def _message_of(path: list[Item], entry_id: str) -> Message | None:
    return next((item.message for item in reversed(path) if item.entry_id == entry_id), None)


def _present(record: TurnRecord | None) -> TurnRecord:
    assert record is not None, "only a delivery is decided without a record"
    return record
