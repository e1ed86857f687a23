"""A step that breaks for good: how its turn ends, and what the step's span says of it (harness-loop 6.1, 11, 17)."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from iii_harness.decide.core import decide
from iii_harness.decide.decision import Append, Generated, Unfit, View
from iii_harness.decide.failure import own_failure
from iii_harness.record import Checkpoint
from iii_harness.shell.step_span import mark_failure, mark_recovery
from iii_testing.loop_bench import bench, reply, steps, text
from iii_testing.loop_values import a_record, a_reply, facts, words

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("loop.broken.stopped")
async def test_a_step_that_breaks_after_a_stop_ends_its_turn_cancelled(world, tmp_path):
    async with bench(world, tmp_path, steps(reply(text("x")))) as b:
        loop_turn: Any = b.harness._parts.loop.turn
        loop_turn.__self__._tools.generation.run = _defect(b)
        record = await b.over((await b.send())["session_id"])
        assert (record.status, record.result_error) == ("cancelled", None)
        assert b.completed[0]["reason"] == "stopped"


def _defect(b: Any) -> Any:
    """A generation during which the turn is stopped, and which then breaks."""

    async def run(record: Any, *_: Any, **__: Any) -> Any:
        b.harness._parts.signals.fire(record.turn_id)
        raise RuntimeError("a defect")

    return run


def failed_with_a_started_call() -> Any:
    record = a_record(calls={"c1": Checkpoint(state="triggered", function_id="demo::do")})
    failure = own_failure("harness.turn_internal", "execution", "a defect")
    return decide(record, View(), Unfit(failure), facts())


@pytest.mark.requirement("loop.broken.settles")
def test_the_started_call_of_a_failed_turn_is_not_called_stopped():
    entry = next(w for w in failed_with_a_started_call().writes if isinstance(w, Append) and w.message)
    assert entry.message is not None
    assert "stopped" not in entry.message["content"][0]["text"]


@pytest.mark.requirement("loop.broken.span")
def test_the_span_of_a_failed_turn_has_code_cause_and_phase_and_nothing_is_done_without_one():
    decision = failed_with_a_started_call()
    mark_failure(decision.record, decision.writes)
    made = recorded(lambda: mark_failure(decision.record, decision.writes))
    assert dict(made.attributes or {}) == {
        "error.type": "harness.turn_internal",
        "error.message": "a defect",
        "iii.turn.failure_phase": "execution",
        "iii.turn.retryable": False,
        "iii.turn.partial_result_available": False,
        "iii.turn.transient_resumes": 0,
        "iii.turn.max_transient_resumes": 1,
    }


@pytest.mark.requirement("loop.broken.span")
def test_the_span_of_a_step_that_is_resumed_has_the_attempt_and_why():
    broken = a_reply(words("part"), stop_reason="error")
    error = {"code": "router/stream_incomplete", "message": "cut", "kind": "transient"}
    decision = decide(a_record(), View(leaf="e"), Generated(broken, ok=False, error=error), facts())
    assert decision.record is not None
    record = decision.record
    made = recorded(lambda: mark_recovery(record, decision.writes))
    assert dict(made.attributes or {}) == {
        "iii.turn.recovery_attempt": 1,
        "iii.turn.recovery_max": 1,
        "iii.turn.partial_result_available": True,
    }
    (event,) = made.events
    assert (event.name, dict(event.attributes or {})) == (
        "harness.turn.recovery",
        {"attempt": 1, "max_attempts": 1, "reason": "cut"},
    )


def recorded(work: Any) -> Any:
    """The span that `work` ran in."""
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with trace.use_span(provider.get_tracer("test").start_span("harness::turn step"), end_on_exit=True):
        work()
    return spans.get_finished_spans()[0]
