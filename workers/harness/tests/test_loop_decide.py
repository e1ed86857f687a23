"""`decide` by examples: guards, generation, calls, endings (harness-loop 6, 8, 11)."""

from __future__ import annotations

from typing import Any

import pytest

from iii_harness.decide.core import decide
from iii_harness.decide.decision import (
    Append,
    Cut,
    Decision,
    Delivered,
    Drain,
    Drained,
    End,
    Enqueue,
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
    Stream,
    Unfit,
    View,
)
from iii_harness.decide.failure import own_failure
from iii_harness.decide.results import of_value
from iii_harness.record import Checkpoint, Generation, TurnRecord
from iii_testing.loop_values import AllowAll, a_call, a_record, a_reply, facts, words


def kinds(decision: Decision) -> list[str]:
    return [type(write).__name__ for write in decision.writes]


def entry_of(decision: Decision, entry_id: str) -> Append:
    return next(w for w in decision.writes if isinstance(w, Append) and w.entry_id == entry_id)


def generated(message: dict[str, Any], record: TurnRecord | None = None, **fields: Any) -> Decision:
    ok = fields.pop("ok", True)
    error = fields.pop("error", None)
    return decide(record or a_record(), View(leaf="e_leaf"), Generated(message, ok, error), facts(**fields))


@pytest.mark.requirement("loop.guard.step")
@pytest.mark.parametrize(
    ("record", "turn_id", "step"),
    [
        (None, "t", 0),
        (a_record(), "other", 0),
        (a_record(step=2), "t", 0),
        (a_record(step=2), "t", 3),
        (a_record(status="awaiting_functions"), "t", 0),
    ],
)
def test_any_delivery_but_the_records_own_step_is_dropped(record, turn_id, step):
    decision = decide(record, View(), Delivered(turn_id, step), facts())
    assert (decision.writes, decision.next) == ([], Park(skipped=True))


@pytest.mark.requirement("loop.guard.goes-on")
def test_a_delivery_drains_cancels_or_reloads():
    assert decide(a_record(), View(), Delivered("t", 0), facts()).next == Drain()
    consumed = a_record(generated=Generation(step=0, stop_reason="end"))
    assert decide(consumed, View(), Delivered("t", 0), facts()).next == Reload()
    for stopped in (
        decide(a_record(abort=True), View(), Delivered("t", 0), facts()),
        decide(a_record(), View(), Delivered("t", 0), facts(stopped=True)),
    ):
        assert stopped.next == End("stopped")
        assert stopped.record is not None and stopped.record.status == "cancelled"


@pytest.mark.requirement("loop.guard.lost-enqueue")
def test_a_step_whose_enqueue_was_lost_is_enqueued_by_the_redelivery_before_it():
    ahead = a_record(step=3)
    assert decide(ahead, View(), Delivered("t", 2), facts(scheduled=False)).writes == [Enqueue(ahead)]
    assert decide(ahead, View(), Delivered("t", 2), facts()).writes == []
    assert decide(ahead, View(), Delivered("t", 1), facts(scheduled=False)).writes == []


@pytest.mark.requirement("loop.guard.told-again")
def test_a_redelivered_last_step_tells_the_end_again_and_writes_nothing():
    ended = a_record(status="failed", result_error="why")
    decision = decide(ended, View(), Delivered("t", 0), facts())
    assert (decision.writes, decision.next) == ([], End("why"))


@pytest.mark.requirement("loop.max-turns")
def test_a_turn_without_generations_left_ends_completed_and_says_so():
    record = a_record(turn_count=2, options={"max_turns": 2})
    decision = decide(record, View(), Drained(), facts())
    assert kinds(decision) == ["Append", "Save", "Project"]
    assert entry_of(decision, "e_t_max_turns").data["reason"] == "max_turns"
    ended = decision.record
    assert ended is not None
    assert (ended.status, ended.stop_reason, ended.result) == (
        "completed",
        "max_turns",
        "max_turns (2) reached; ending the turn.",
    )
    assert decide(a_record(turn_count=1, options={"max_turns": 2}), View(), Drained(), facts()).next == Prepare()


@pytest.mark.requirement("loop.ask.durable")
def test_the_placeholder_and_the_request_id_are_written_before_the_model_is_asked():
    decision = decide(a_record(step=2), View(), Ready(sendable=True, runtime_context="aid"), facts())
    assert kinds(decision) == ["Append", "Append", "Save", "Project"]
    assert entry_of(decision, "e_t_2_runtime_context").data == {"aid": "aid"}
    placeholder = entry_of(decision, "e_t_2_assistant").message
    assert placeholder is not None
    assert (placeholder["content"], placeholder["stop_reason"], placeholder["provider"]) == ([], "end", "p")
    assert decision.record is not None and decision.record.stream_request_id == "t:2"
    assert decision.next == Stream()


@pytest.mark.requirement("loop.ask.empty")
def test_an_empty_window_fails_the_turn():
    decision = decide(a_record(), View(), Ready(sendable=False), facts())
    assert entry_of(decision, "e_t_error").data["code"] == "harness.empty_context"
    assert decision.record is not None and decision.record.status == "failed"


@pytest.mark.requirement("loop.ask.unfit")
def test_a_request_that_cannot_be_made_fails_the_turn():
    failure = own_failure("harness.context_overflow", "context_assembly", "too long")
    decision = decide(a_record(), View(), Unfit(failure), facts())
    data = entry_of(decision, "e_t_error").data
    assert (data["code"], data["class"], data["phase"]) == (
        "harness.context_overflow",
        "llm.context_overflow",
        "context_assembly",
    )


@pytest.mark.requirement("loop.finish.completed")
def test_a_reply_without_calls_completes_with_its_text():
    decision = generated(a_reply(words("one "), {"type": "thinking", "text": "no"}, words("two")))
    assert kinds(decision) == ["Rewrite", "Save", "Project"]
    ended = decision.record
    assert ended is not None
    assert (ended.status, ended.result, ended.turn_count, ended.watermark_entry_id) == (
        "completed",
        "one two",
        1,
        "e_leaf",
    )
    assert decision.writes[-1] == Project("done", None)


@pytest.mark.requirement("loop.finish.steered")
def test_a_reply_without_calls_goes_on_when_a_user_message_waits():
    decision = generated(a_reply(words("x")), steered=True)
    assert kinds(decision) == ["Rewrite", "Save", "Enqueue"]
    assert decision.record is not None and (decision.record.step, decision.record.status) == (1, "running")


@pytest.mark.requirement("loop.call.durable")
def test_the_first_call_is_triggered_in_the_write_that_keeps_the_reply():
    decision = generated(a_reply(a_call("c1"), a_call("c2")))
    assert kinds(decision) == ["Rewrite", "Save"]
    saved = decision.writes[1]
    assert isinstance(saved, Save)
    assert saved.record.generated == Generation(step=0, stop_reason="end")
    assert saved.record.calls == {"c1": Checkpoint(state="triggered", function_id="f::x")}
    assert isinstance(decision.next, Invoke) and decision.next.call.id == "c1"


@pytest.mark.requirement("loop.call.order")
def test_a_result_is_written_with_the_next_calls_checkpoint_and_the_last_with_the_next_step():
    message = a_reply(a_call("c1"), a_call("c2"))
    first = generated(message)
    assert isinstance(first.next, Invoke)
    view = View(message, "e_leaf")
    second = decide(first.record, view, Returned(first.next.call, of_value("r1")), facts())
    assert kinds(second) == ["Append", "Save"]
    assert second.record is not None and isinstance(second.next, Invoke)
    assert {k: c.state for k, c in second.record.calls.items()} == {"c1": "done", "c2": "triggered"}
    last = decide(second.record, view, Returned(second.next.call, of_value("r2")), facts())
    assert kinds(last) == ["Append", "Save", "Enqueue"]
    assert last.record is not None and last.record.step == 1
    assert {c.state for c in last.record.calls.values()} == {"done"}


@pytest.mark.requirement("loop.call.local")
def test_local_answers_come_after_the_mark_of_the_generation():
    content = (
        a_call("c1", "f::no"),
        {"type": "function_call", "id": "c2", "function_id": "agent_trigger", "arguments": {}},
        a_call("c3", payload={"_partial": True}),
        {"type": "function_call", "id": "c4", "function_id": "submit_result", "arguments": {}},
    )
    decision = generated(a_reply(*content, stop_reason="length"), gate=AllowAll("f::no"))
    assert kinds(decision) == ["Rewrite", "Save", "Append", "Append", "Append", "Append", "Save", "Enqueue"]
    errors = [entry_of(decision, f"e_t_c{n}").message["details"]["error"] for n in (1, 2, 3, 4)]  # type: ignore[index]
    assert errors == ["policy_denied", "agent_trigger_no_target", "arguments_truncated", "policy_denied"]
    assert entry_of(decision, "e_t_c3").message["details"]["cause"] == "max_output_tokens"  # type: ignore[index]


@pytest.mark.requirement("loop.call.at-most-once")
def test_a_triggered_call_found_again_is_interrupted_and_never_invoked():
    message = a_reply(a_call("c1"), a_call("c2"))
    record = a_record(
        generated=Generation(step=0, stop_reason="end"),
        calls={"c1": Checkpoint(state="triggered", function_id="f::x")},
    )
    decision = decide(record, View(message), Reloaded(message), facts())
    assert entry_of(decision, "e_t_c1").message["details"] == {"error": "interrupted"}  # type: ignore[index]
    assert isinstance(decision.next, Invoke) and decision.next.call.id == "c2"


@pytest.mark.requirement("loop.call.logged")
def test_a_call_whose_result_is_in_the_transcript_is_done():
    message = a_reply(a_call("c1"))
    record = a_record(
        generated=Generation(step=0, stop_reason="end"),
        calls={"c1": Checkpoint(state="triggered", function_id="f::x")},
    )
    decision = decide(record, View(message, None, frozenset({"e_t_c1"})), Reloaded(message), facts())
    assert kinds(decision) == ["Save", "Enqueue"]


@pytest.mark.requirement("loop.stop.call")
def test_a_stop_during_a_call_settles_it_as_interrupted_and_cancels():
    first = generated(a_reply(a_call("c1"), a_call("c2")))
    assert isinstance(first.next, Invoke)
    decision = decide(first.record, View(a_reply()), Cut(first.next.call), facts(stopped=True))
    text = entry_of(decision, "e_t_c1").message["content"][0]["text"]  # type: ignore[index]
    assert text == "interrupted: started, outcome unknown (stopped during execution)"
    assert [w.entry_id for w in decision.writes if isinstance(w, Append)] == ["e_t_c1", "e_t_stopped"]
    assert decision.writes[-1] == Project("done", "stopped")
    assert decision.next == End("stopped")


@pytest.mark.requirement("loop.stop.reply")
def test_a_stopped_reply_keeps_its_partial_without_empty_calls():
    empty = {"type": "function_call", "id": "c0", "function_id": "agent_trigger", "arguments": {}}
    decision = generated(a_reply(words("par"), empty, a_call("c1"), stop_reason="aborted"))
    rewrite = decision.writes[0]
    assert isinstance(rewrite, Rewrite)
    assert rewrite.message["content"] == [words("par"), a_call("c1")]
    assert decision.record is not None and (decision.record.status, decision.record.result) == ("cancelled", None)


TRANSIENT = {"code": "router/stream_incomplete", "message": "cut", "kind": "transient", "retryable": True}


@pytest.mark.requirement("loop.recovery.resumes")
def test_a_broken_stream_with_a_partial_resumes_once():
    decision = generated(a_reply(words("half")), ok=False, error=TRANSIENT)
    assert kinds(decision) == ["Rewrite", "Append", "Append", "Save", "Enqueue"]
    data = entry_of(decision, "e_t_recovery_1_recovering").data
    assert (data["attempt"], data["max_attempts"], data["code"]) == (1, 1, "router/stream_incomplete")
    nudge = entry_of(decision, "e_t_resume_1").message
    assert nudge is not None and nudge["role"] == "user"
    resumed = decision.record
    assert resumed is not None
    assert (resumed.result, resumed.transient_resumes, resumed.step) == ("half", 1, 1)
    good = generated(a_reply(words("whole")), resumed)
    assert entry_of(good, "e_t_recovery_1_recovered").data["status"] == "recovered"
    again = generated(a_reply(words("half")), resumed, ok=False, error=TRANSIENT)
    assert again.record is not None and (again.record.status, again.record.result) == ("failed", "half")
    assert entry_of(again, "e_t_error").data["recovery"] == {
        "attempted": 1,
        "max_attempts": 1,
        "outcome": "exhausted",
    }


@pytest.mark.requirement("loop.recovery.fails")
@pytest.mark.parametrize(
    ("content", "error", "options"),
    [
        ([], TRANSIENT, {}),
        ([words("  ")], TRANSIENT, {}),
        ([words("half")], {**TRANSIENT, "retryable": False}, {}),
        ([words("half")], TRANSIENT, {"max_transient_resumes": 0}),
        ([words("half")], TRANSIENT, {"max_turns": 1}),
    ],
)
def test_a_generation_that_cannot_be_resumed_fails_the_turn(content, error, options):
    decision = generated(a_reply(*content), a_record(options=options), ok=False, error=error)
    assert decision.record is not None and decision.record.status == "failed"
    assert decision.record.transient_resumes == 0
    assert decision.next == End("The provider disconnected before it finished.")


@pytest.mark.requirement("loop.failed.settles")
def test_a_failing_turn_settles_a_started_call():
    from iii_harness.decide import ending

    record = a_record(calls={"c1": Checkpoint(state="triggered", function_id="f::x")})
    failure = own_failure("harness.turn_internal", "execution", "bug")
    decision = ending.failed(record, [], failure, View(), facts())
    assert [w.entry_id for w in decision.writes if isinstance(w, Append)] == ["e_t_c1", "e_t_error"]
    assert decision.record is not None and decision.record.calls["c1"].state == "done"
