"""The pure half of context assembly: requests, sizes, compactions, snapshots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_contracts.context import AssembleAnswer
from iii_contracts.harness.context import ContextSnapshotV1
from iii_harness.decide import context_fit, context_request, context_snapshot
from iii_harness.decide.context_snapshot import Context, Measured
from iii_harness.decide.window import Entry, Window
from iii_testing.loop_values import a_record

REQUEST = {"session_id": "s", "request_id": "t:0", "model": "m", "tools": [], "system_prompt": "base\n\nrest"}

SECTIONS = [{"text": "base", "cache_boundary": True}, {"text": "rest", "cache_boundary": False}]


def said(text):
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}


def answer(**fields):
    applied = fields.pop("applied", {})
    whole = {
        "system_prompt": "base",
        "messages": [said("a")],
        "token_count": 100,
        "usable": 1000,
        "effective_max_output_tokens": 10,
        "model_resolved": "router",
        "applied": applied,
    }
    return AssembleAnswer.model_validate({**whole, **fields})


@pytest.mark.requirement("loop.context.request")
def test_the_overhead_counts_the_settings_that_are_neither_messages_nor_prompt_nor_tools():
    assert context_request.overhead_of(REQUEST) == 64 + 1
    options = {"test": {"text": "ü" * 7}}
    assert context_request.overhead_of({**REQUEST, "provider_options": options}) == 64 + 12, "characters, not bytes"
    shaped = {**REQUEST, "response_format": {"type": "json"}}
    assert context_request.overhead_of(shaped) == 64 + 9
    assert context_request.overhead_of({**REQUEST, "messages": ["x" * 999]}) == 65


@pytest.mark.requirement("loop.context.request")
def test_the_window_goes_out_entry_by_entry():
    window = Window([Entry("e1", said("a")), Entry("e2", said("b"))], summary="so far")
    asked = context_request.assembly({**REQUEST, "thinking_level": "low"}, window, 70)
    assert asked == {
        "messages": [said("a"), said("b")],
        "model": {"id": "m"},
        "tools": [],
        "system_prompt": "base\n\nrest",
        "options": {
            "lease_key": "s",
            "request_overhead_tokens": 70,
            "previous_summary": "so far",
            "thinking_level": "low",
        },
    }


@pytest.mark.requirement("loop.context.sections")
def test_sections_join_to_the_prompt_or_are_left_out():
    request = {**REQUEST, "system_sections": SECTIONS, "cache_intent": {"surface_digest": "d"}}
    kept, why = context_request.prompted(request, "base\n\nrest\n\nmore", None)
    assert why is None and "\n\n".join(s["text"] for s in kept["system_sections"]) == kept["system_prompt"]
    flat, why = context_request.prompted(request, "other", None)
    assert why == "prefix_rewritten" and not {"system_sections", "cache_intent"} & flat.keys()
    assert context_request.prompted(REQUEST, "other", "disabled")[1] == "disabled"
    assert "system_prompt" not in context_request.prompted(REQUEST, "", None)[0]


@pytest.mark.requirement("loop.context.compaction")
@given(st.integers(0, 6), st.one_of(st.none(), st.integers(0, 9)))
def test_a_compaction_names_the_entry_at_its_position_or_the_answer_is_refused(count, start):
    entries = [Entry(f"e{n}", said(str(n))) for n in range(count)]
    applied = {"compacted": True, "summary": "s", "tail_start_index": start}
    made = answer(applied=applied)
    if start is not None and start >= count:
        assert context_fit.broken(made, count) is not None
        return
    assert context_fit.broken(made, count) is None
    kept = context_fit.compaction(made, entries)
    assert kept is not None
    assert kept["tail_start_entry_id"] == (None if start is None else f"e{start}")


@pytest.mark.requirement("loop.context.compaction")
@pytest.mark.parametrize("applied", [{}, {"compacted": True}, {"summary": "s"}, {"compacted": True, "summary": ""}])
def test_nothing_summarised_is_nothing_kept(applied):
    assert context_fit.compaction(answer(applied=applied), [Entry("e", said("a"))]) is None


@pytest.mark.requirement("loop.context.room")
@given(st.integers(0, 500), st.integers(1, 500), st.integers(0, 500))
def test_the_second_assembly_has_room_for_what_was_added(base, growth, token_count):
    first = context_fit.fit(answer(token_count=token_count + base), [said("told")], base)
    final = context_fit.size(first, base, token_count + growth)
    overhead = context_fit.roomier(first, base, final)
    assert overhead == base + growth + 256
    second = context_fit.fit(answer(token_count=token_count + overhead), [], overhead)
    assert not second.changed
    assert context_fit.size(second, base, None) == token_count + base, "the reserve itself is not sent"


@pytest.mark.requirement("loop.context.overflow")
def test_an_exact_fit_fits():
    assert context_fit.overflow(answer(token_count=1000)) is None
    assert context_fit.overflow(answer(token_count=1001)) is not None
    assert context_fit.overflow(answer(messages=[])) is not None
    assert context_fit.is_overflow("invocation_failed: context/overflow: too much")
    assert not context_fit.is_overflow("router/context_overflow: too much")


@pytest.mark.requirement("loop.context.snapshot")
def test_a_snapshot_keeps_to_its_schema_and_leaves_out_what_is_not_known():
    shown = context_snapshot.taken(
        a_record(),
        Measured(answer(token_count=165), 65, 205, 40),
        summarised=False,
        head_tokens=9,
        surface_digest=None,
        fallback="disabled",
        now_ms=5,
    )
    ContextSnapshotV1.model_validate(shown)
    assert (shown["total"], shown["free"], shown["categories"]["hook_guidance"]) == (205, 795, 40)
    assert not {"estimator", "usage", "session_cost_usd", "summarized_head_tokens"} & shown.keys()
    parts = {"system_prompt_tokens": 50, "tools_tokens": 1, "by_role": {"user": 3}, "estimator": "tokenizer"}
    counted = answer(breakdown={**parts, "by_part": {"skills": 20}})
    shown = context_snapshot.taken(
        a_record(),
        Measured(counted, 65, 2000, 0),
        summarised=True,
        head_tokens=9,
        surface_digest="sha256:1",
        fallback=None,
        now_ms=5,
    )
    ContextSnapshotV1.model_validate(shown)
    assert (shown["free"], shown["summarized_head_tokens"]) == (0, 9)
    assert (shown["categories"]["system_prompt"], shown["categories"]["skills"]) == (30, 20)


@pytest.mark.requirement("loop.context.snapshot")
def test_cost_and_billed_input_are_stamped_when_they_are_known():
    taken = {"usable": 100, "total": 7, "free": 93}
    assert context_snapshot.stamped(Context(taken, 1.0), None) == taken
    stamped = context_snapshot.stamped(Context(taken, 1.0), {"input": 90, "cache_read": 20, "cost_usd": 0.5})
    assert (stamped["total"], stamped["free"], stamped["session_cost_usd"]) == (110, 0, 1.5)
    unknown = context_snapshot.stamped(Context(taken, None), {"output": 3, "cost_usd": 0.5})
    assert (unknown["total"], "session_cost_usd" in unknown) == (7, False)
    assert "session_cost_usd" not in context_snapshot.stamped(Context(taken, 1.0), {"input": 1})
    assert context_snapshot.cost_of(None) == 0.0
    assert context_snapshot.cost_of({}) is None
