"""`decide`: what a step does next, for every event (harness-loop 6, 8, 11).

Total over the events of a turn of one agent. The record that comes back is the one to go on with; its writes are in
the order in which any prefix may be all that survives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from msgspec.structs import replace

from iii_harness.decide import ending, entry_ids
from iii_harness.decide.calls import Walk, planned, settled, walk
from iii_harness.decide.context_snapshot import stamped
from iii_harness.decide.decision import (
    Append,
    Cut,
    Decision,
    Delivered,
    Drain,
    Drained,
    End,
    Enqueue,
    Event,
    Facts,
    Generated,
    Invoke,
    Park,
    Prepare,
    Project,
    Ready,
    Reload,
    Reloaded,
    Returned,
    Rewrite,
    Save,
    Snapshot,
    Stream,
    Unfit,
    View,
    Write,
)
from iii_harness.decide.failure import EMPTY_CONTEXT, generation_failure, own_failure
from iii_harness.decide.plan import PlannedCall, calls_of, renamed
from iii_harness.decide.results import Result, capped
from iii_harness.decide.window import COMPACTION
from iii_harness.ports import Message
from iii_harness.record import Generation, TurnRecord


def decide(record: TurnRecord | None, view: View, event: Event, facts: Facts) -> Decision:
    """The next move of the session's turn."""
    if isinstance(event, Delivered):
        return _delivered(record, view, event, facts)
    if record is None:
        return Decision(None, [], Park(skipped=True))
    if isinstance(event, Drained):
        return _drained(record, facts)
    if isinstance(event, Ready):
        return _ready(record, view, event, facts)
    if isinstance(event, Generated):
        return _generated(record, view, event, facts)
    if isinstance(event, Returned):
        return _returned(record, view, event, facts)
    match event:
        case Reloaded(message):
            return _goes_on(record, [], message, planned(record, message), view, facts)
        case Unfit(failure, compaction):
            return ending.failed(record, _compacted(record, compaction), failure, view, facts)
        case Cut():
            return ending.cancelled(record, [], view, facts)
        case _:
            assert_never(event)


def _delivered(record: TurnRecord | None, view: View, event: Delivered, facts: Facts) -> Decision:
    """The guards of 6.2: anything but the record's own step is dropped."""
    skipped = Decision(record, [], Park(skipped=True))
    if record is None or record.turn_id != event.turn_id:
        return skipped
    if record.step != event.step:
        # The write of the next step survived and its enqueue did not: the redelivered step before it makes up for that.
        lost = record.step == event.step + 1 and record.status == "running" and not facts.scheduled
        return Decision(record, [Enqueue(record)], Park(skipped=True)) if lost else skipped
    if record.terminal:
        # The process died between the end of the turn and its telling: tell it again.
        return Decision(record, [], End(ending.reason_of(record)))
    if record.status != "running":
        return skipped
    if record.abort or facts.stopped:
        return ending.cancelled(record, [], view, facts)
    if record.generated is not None and record.generated.step == record.step:
        return Decision(record, [], Reload())
    return Decision(record, [], Drain())


def _drained(record: TurnRecord, facts: Facts) -> Decision:
    if record.turn_count >= record.options.max_turns:
        return ending.out_of_turns(record, facts)
    return Decision(record, [], Prepare())


def _ready(record: TurnRecord, view: View, event: Ready, facts: Facts) -> Decision:
    """The placeholder of the reply and the record that names its generation, before the model is asked."""
    if facts.stopped:
        return ending.cancelled(record, [], view, facts)
    if not event.sendable:
        failure = own_failure(EMPTY_CONTEXT, "context_assembly", "the window holds no message")
        return ending.failed(record, [], failure, view, facts)
    writes = _compacted(record, event.compaction)
    turn, step = record.turn_id, record.step
    if event.runtime_context is not None:
        aid = {"aid": event.runtime_context}
        writes.append(Append(entry_ids.runtime_context(turn, step), custom_type="runtime_context", data=aid))
    if event.move is not None:
        writes.append(Append(entry_ids.order(turn, step), custom_type="message_order", data=event.move.to_json()))
    for entry_id, notice in event.notices:
        data = {"kind": notice.kind, "text": notice.text, "message": notice_message(notice.text, event.at_ms)}
        writes.append(Append(entry_id, custom_type="model_notice", data=data))
    placeholder: Message = {
        "role": "assistant",
        "content": [],
        "stop_reason": "end",
        "model": record.options.model,
        "provider": record.options.provider or "",
        "timestamp": facts.now_ms,
    }
    acknowledged = record.functions_acknowledged if event.acknowledged is None else event.acknowledged
    asked = replace(
        record,
        stream_request_id=record.request_id,
        functions_acknowledged=acknowledged,
        updated_at=facts.now_ms,
    )
    writes += [Append(entry_ids.assistant(turn, step), placeholder), Save(asked)]
    return Decision(asked, [*writes, Project("working", f"waiting for {record.options.model}")], Stream())


def _compacted(record: TurnRecord, compaction: dict[str, Any] | None) -> list[Write]:
    """The entry of a compaction, before everything that it leaves in the window."""
    if compaction is None:
        return []
    entry_id = entry_ids.compaction(record.turn_id, record.step)
    return [Append(entry_id, custom_type=COMPACTION, data=compaction)]


def notice_message(text: str, now_ms: int) -> Message:
    """A notice as the model gets it."""
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": now_ms}


def _generated(record: TurnRecord, view: View, event: Generated, facts: Facts) -> Decision:
    """The end of a generation; the snapshot of its request goes into the record and, last, into its own row (12.7)."""
    if view.context is None:
        return _consumed(record, view, event, facts)
    snapshot = stamped(view.context, event.message.get("usage"))
    decision = _consumed(replace(record, context_snapshot=snapshot), view, event, facts)
    return replace(decision, writes=[*decision.writes, Snapshot(snapshot)])


def _consumed(record: TurnRecord, view: View, event: Generated, facts: Facts) -> Decision:
    """Count a generation (6.5), then cancel, fail or resume, or go on with its calls."""
    message = event.message
    content: Any = renamed(message.get("content"), step=record.step, used=record.calls)
    if message.get("stop_reason") == "aborted":
        content = _without_empty_calls(content)
    message = {**message, "content": content}
    stop_reason = str(message.get("stop_reason", "end"))
    stopped = facts.stopped or record.abort or stop_reason == "aborted"
    good = event.ok and not stopped
    counted = replace(
        record,
        turn_count=record.turn_count + 1,
        watermark_entry_id=view.leaf or record.watermark_entry_id,
        generated=Generation(record.step, stop_reason) if good else record.generated,
        updated_at=facts.now_ms,
    )
    rewrite: list[Write] = [Rewrite(entry_ids.assistant(record.turn_id, record.step), message)]
    if stopped:
        return ending.cancelled(counted, rewrite, view, facts)
    if not good:
        failure = generation_failure(message, event.error)
        return ending.broken(counted, rewrite, message, failure, view, facts)
    told = ending.recovered(record, facts)
    calls = planned(counted, message)
    way = walk(counted, message, calls, view, facts)
    if told or way.answered:
        # The mark of the generation is durable before a result: a result whose call could vanish again is an orphan.
        rewrite.append(Save(counted))
    return _along(way, [*rewrite, *told], message, facts, called=bool(calls))


def _goes_on(
    record: TurnRecord, before: list[Write], message: Message, calls: Sequence[PlannedCall], view: View, facts: Facts
) -> Decision:
    """The `calls` of a persisted reply, up to the next one to invoke; a stop ends it before that."""
    if facts.stopped or record.abort:
        return ending.cancelled(record, before, view, facts)
    called = bool(before or calls)
    return _along(walk(record, message, calls, view, facts), before, message, facts, called=called)


def _along(way: Walk, before: list[Write], message: Message, facts: Facts, *, called: bool) -> Decision:
    """Invoke the next call; after the last one, the next step or, when the reply `called` nothing, the end."""
    writes: list[Write] = [*before, *way.answered]
    if way.call is not None:
        return Decision(way.record, [*writes, Save(way.record)], Invoke(way.call, way.behind))
    if called or facts.steered:
        return ending.advanced(way.record, writes, facts)
    return ending.completed(way.record, writes, message, facts)


def _returned(record: TurnRecord, view: View, event: Returned, facts: Facts) -> Decision:
    """The result of an invoked call into the transcript, then on to the next."""
    after = settled(record, event.call, event.result)
    shown = event.result
    if event.presented is not None:
        after = replace(after, function_contract_ledger=event.presented.ledger)
        if event.presented.content is not None:
            shown = Result(event.presented.content, shown.details, shown.is_error)
    call = event.call
    entry = ending.result_entry(after, call.id, call.target, capped(shown, facts.max_result_bytes), facts)
    assert view.message is not None, "a call is invoked only for a reply"
    calls = planned(after, view.message) if event.behind is None else event.behind
    return _goes_on(after, [entry], view.message, calls, view, facts)


def _without_empty_calls(content: Any) -> Any:
    """An aborted reply without the calls whose arguments never came."""
    empty = {id(block) for block in calls_of(content) if block.get("arguments") in (None, "", {})}
    return [block for block in content if id(block) not in empty] if empty else content
