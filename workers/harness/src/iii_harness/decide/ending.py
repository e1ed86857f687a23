"""How a turn ends or goes on (harness-loop 11): completed, failed, cancelled, resumed after a broken stream, advanced.

In every list of writes the entries come before the record that makes them final, so that any prefix can be repeated.
"""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from iii_harness.decide import entry_ids, synthetic
from iii_harness.decide.decision import (
    Append,
    Decision,
    End,
    Enqueue,
    Facts,
    Park,
    Project,
    Rewrite,
    Save,
    View,
    Write,
)
from iii_harness.decide.failure import NEXT_ACTIONS, Failure
from iii_harness.decide.plan import calls_of
from iii_harness.decide.results import Result, text_block
from iii_harness.ports import Message
from iii_harness.record import Checkpoint, TurnRecord, TurnStatus

NUDGE = (
    "The previous reply was cut off: its stream broke before it was complete. Continue from the transcript and return "
    "the complete deliverable, including the part that already arrived. Do not repeat calls that already succeeded."
)


def advanced(record: TurnRecord, before: list[Write], facts: Facts) -> Decision:
    """The next step, enqueued; of the calls behind it only their ids (and their children) are kept."""
    calls = {i: call if call is _DONE else _slim(call) for i, call in record.calls.items()}
    ahead = replace(record, step=record.step + 1, status="running", calls=calls, updated_at=facts.now_ms)
    return Decision(ahead, [*before, Save(ahead), Enqueue(ahead)], Park())


def completed(record: TurnRecord, before: list[Write], message: Message, facts: Facts) -> Decision:
    """The turn with the text of its last message as result."""
    return _finished(record, before, "completed", facts, result=text_of(message))


def out_of_turns(record: TurnRecord, facts: Facts) -> Decision:
    """The turn that has used all its generations."""
    text = f"max_turns ({record.options.max_turns}) reached; ending the turn."
    notice = Append(
        entry_ids.max_turns(record.turn_id), custom_type="notice", data={"reason": "max_turns", "message": text}
    )
    ended = replace(record, stop_reason="max_turns")
    return _finished(ended, [notice], "completed", facts, result=text)


def cancelled(record: TurnRecord, before: list[Write], view: View, facts: Facts) -> Decision:
    """The stopped turn: calls that were started are settled as interrupted, others get no result."""
    settled, writes = _settled(record, view, facts, stopped=True)
    notice = {"reason": "stopped", "message": "stopped by user."}
    writes.append(Append(entry_ids.stopped(record.turn_id), custom_type="notice", data=notice))
    return _finished(settled, [*before, *writes], "cancelled", facts, reason="stopped")


def failed(record: TurnRecord, before: list[Write], failure: Failure, view: View, facts: Facts) -> Decision:
    """The failed turn: an `error` entry says why, a preserved partial stays its result."""
    entry = Append(
        entry_ids.error(record.turn_id), custom_type="error", data=_error_data(record, failure, facts.now_ms)
    )
    settled, writes = _settled(record, view, facts, stopped=False)
    ended = replace(settled, result_error=failure.summary)
    return _finished(
        ended,
        [*before, *writes, entry],
        "failed",
        facts,
        result=record.result,
        reason=failure.summary,
        shown=failure.summary,
    )


def broken(
    record: TurnRecord, before: list[Write], message: Message, failure: Failure, view: View, facts: Facts
) -> Decision:
    """A generation that failed: resume when there is something to resume from, else fail (11.3)."""
    partial = partial_of(message)
    kept = replace(record, result=partial) if partial is not None else record
    options = record.options
    if (
        partial is None
        or not failure.retryable
        or record.transient_resumes >= options.max_transient_resumes
        or record.turn_count >= options.max_turns
    ):
        return failed(kept, before, failure, view, facts)
    attempt = record.transient_resumes + 1
    nudge: Message = {"role": "user", "content": [text_block(NUDGE)], "timestamp": facts.now_ms}
    data = {
        "status": "recovering",
        "summary": failure.summary,
        "reason": failure.detail,
        "detail": failure.detail,
        "code": failure.code,
        "class": failure.klass,
        **_model(record),
        **_attempt(record, attempt, facts.now_ms),
        "partial_result_available": True,
    }
    writes: list[Write] = [
        *map(_without_calls, before),
        Append(entry_ids.recovery(record.turn_id, attempt, "recovering"), custom_type="recovery", data=data),
        Append(entry_ids.resume_nudge(record.turn_id, attempt), nudge),
    ]
    return advanced(replace(kept, transient_resumes=attempt), writes, facts)


def _without_calls(write: Write) -> Write:
    """A broken reply without its calls: none was made, and the model that goes on asks again for what it needs."""
    if not isinstance(write, Rewrite) or not calls_of(write.message.get("content")):
        return write
    content = [block for block in _blocks(write.message) if block.get("type") != "function_call"]
    return Rewrite(write.entry_id, {**write.message, "content": content})


def recovered(record: TurnRecord, facts: Facts) -> list[Write]:
    """The entry of the first good generation after a resume; none otherwise."""
    generated = record.generated
    if record.transient_resumes == 0 or (generated is not None and generated.step == record.step - 1):
        return []
    attempt = record.transient_resumes
    data = {
        "status": "recovered",
        "summary": "The reply was resumed after a broken stream.",
        **_attempt(record, attempt, facts.now_ms),
        "partial_result_available": record.result is not None,
    }
    return [Append(entry_ids.recovery(record.turn_id, attempt, "recovered"), custom_type="recovery", data=data)]


def reason_of(record: TurnRecord) -> str | None:
    """The `reason` that the end of a terminal turn is told with."""
    return "stopped" if record.status == "cancelled" else record.result_error


def done(function_id: str | None, entry_id: str) -> Checkpoint:
    """The checkpoint of a call whose result is in the transcript."""
    return Checkpoint(state="done", function_id=function_id, entry_id=entry_id)


def result_entry(record: TurnRecord, call_id: str, function_id: str, result: Result, facts: Facts) -> Append:
    """The transcript entry of one call's result."""
    message: Message = {
        "role": "function_result",
        "function_call_id": call_id,
        "function_id": function_id,
        "content": result.content,
        "details": result.details,
        "is_error": result.is_error,
        "timestamp": facts.now_ms,
    }
    return Append(entry_ids.result(record.turn_id, call_id), message)


def text_of(message: Message) -> str:
    """The joined text of a message."""
    return "".join(
        block["text"]
        for block in _blocks(message)
        if block.get("type") == "text" and isinstance(block.get("text"), str)
    )


def partial_of(message: Message) -> Any:
    """What arrived of a failed generation: its text, else its blocks, else None."""
    text = text_of(message)
    if text.strip():
        return text
    others = [block for block in _blocks(message) if block.get("type") != "text"]
    return others or None


def _finished(
    record: TurnRecord,
    before: list[Write],
    status: TurnStatus,
    facts: Facts,
    *,
    result: Any = None,
    reason: str | None = None,
    shown: str | None = None,
) -> Decision:
    ended = replace(record, status=status, result=result, updated_at=facts.now_ms)
    if status == "failed":
        project = Project("error", shown)
    else:
        project = Project("done", "stopped" if status == "cancelled" else None)
    return Decision(ended, [*before, Save(ended), project], End(reason))


def _settled(record: TurnRecord, view: View, facts: Facts, *, stopped: bool) -> tuple[TurnRecord, list[Write]]:
    """The record with every started call settled as interrupted, and the entries that say so."""
    writes: list[Write] = []
    calls = dict(record.calls)
    for call_id, checkpoint in record.calls.items():
        if checkpoint.state != "triggered":
            continue
        entry_id = entry_ids.result(record.turn_id, call_id)
        if entry_id not in view.logged:
            result = synthetic.interrupted(stopped=stopped)
            writes.append(result_entry(record, call_id, checkpoint.function_id or "", result, facts))
        calls[call_id] = done(checkpoint.function_id, entry_id)
    return (replace(record, calls=calls), writes) if calls != record.calls else (record, writes)


def _error_data(record: TurnRecord, failure: Failure, now_ms: int) -> dict[str, Any]:
    return {
        "status": "error",
        "summary": failure.summary,
        "reason": failure.detail,
        "code": failure.code,
        "class": failure.klass,
        "message": failure.summary,
        "detail": failure.detail,
        **_model(record),
        "retryable": failure.retryable,
        "phase": failure.phase,
        "partial_result_available": record.result is not None,
        "recovery": {
            "attempted": record.transient_resumes,
            "max_attempts": record.options.max_transient_resumes,
            "outcome": "exhausted" if record.transient_resumes else "not_attempted",
        },
        "next_actions": NEXT_ACTIONS.get(failure.klass, NEXT_ACTIONS["llm.permanent"]),
        "artifacts": {"session_id": record.session_id, "turn_id": record.turn_id},
        "timestamp": now_ms,
    }


def _model(record: TurnRecord) -> dict[str, Any]:
    return {"provider": record.options.provider or "", "model": record.options.model}


def _attempt(record: TurnRecord, attempt: int, now_ms: int) -> dict[str, Any]:
    return {
        "phase": "generation",
        "attempt": attempt,
        "max_attempts": record.options.max_transient_resumes,
        "timestamp": now_ms,
    }


def _slim(checkpoint: Checkpoint) -> Checkpoint:
    if checkpoint.state != "done" or checkpoint.child_session_id is not None:
        return checkpoint
    return _DONE


_DONE = Checkpoint(state="done")


def _blocks(message: Message) -> list[dict[str, Any]]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [cast("dict[str, Any]", block) for block in cast("list[Any]", content) if isinstance(block, dict)]
