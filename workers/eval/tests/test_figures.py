"""The figures of a comparison, by example and by rule (eval 11.4, 11.5)."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_contracts.session_metrics import SessionMetricsResponseV1
from iii_eval.figures import FIGURES, MOST, delta, deltas, summary

COUNTERS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost_usd",
)

CONTEXT: dict[str, Any] = {
    "session_id": "a",
    "turn_id": "t",
    "step": 1,
    "model": "m",
    "usable": 200,
    "effective_max_output_tokens": 10,
    "total": 250,
    "free": 0,
    "categories": {
        "system_prompt": 1,
        "tools": 1,
        "messages": {"user": 1, "assistant": 1, "function_result": 1, "custom": 1},
        "overhead": 1,
    },
    "compacted": True,
    "timestamp": 1,
}

FULL: dict[str, Any] = {
    "root_session_id": "a",
    "complete": True,
    "totals": {
        "sessions": 3,
        "turns": 4,
        "function_calls": 8,
        "function_call_errors": 2,
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_read_tokens": 7,
        "cache_write_tokens": 6,
        "reasoning_tokens": 5,
        "cost_usd": 0.5,
    },
    "by_session": [
        {
            "session_id": "a",
            "depth": 0,
            "turns": 2,
            "function_calls": 8,
            "function_call_errors": 2,
            "context": CONTEXT,
        },
        {"session_id": "b", "depth": 1, "turns": 1, "function_calls": 0, "function_call_errors": 0},
        {
            "session_id": "c",
            "depth": 2,
            "turns": 1,
            "function_calls": 0,
            "function_call_errors": 0,
            "context": {**CONTEXT, "session_id": "c", "compacted": False},
        },
    ],
    "traces": {"trace_count": 1, "span_count": 30, "error_span_count": 2, "duration_ms": 900, "by_session": []},
}


def read(metrics: dict[str, Any]) -> SessionMetricsResponseV1:
    return SessionMetricsResponseV1.model_validate(metrics)


def with_totals(**totals: Any) -> SessionMetricsResponseV1:
    made = copy.deepcopy(FULL)
    made["totals"] = {name: value for name, value in {**made["totals"], **totals}.items() if value is not ...}
    return read(made)


@pytest.mark.requirement("eval.figures.summary")
def test_every_figure_is_what_the_specification_says() -> None:
    assert summary(read(FULL)) == {
        "total_tokens": 120,
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_read_tokens": 7,
        "cache_write_tokens": 6,
        "reasoning_tokens": 5,
        "subject_cost_usd": 0.5,
        "generations": 4,
        "tokens_per_generation": 30.0,
        "cost_per_generation_usd": 0.125,
        "function_calls": 8,
        "function_call_errors": 2,
        "function_error_rate": 0.25,
        "trace_count": 1,
        "span_count": 30,
        "error_span_count": 2,
        "trace_duration_ms": 900,
        "sessions": 3,
        "descendants": 2,
        "max_depth": 2,
        "compacted_sessions": 1,
        "context_total_tokens": 250,
        "context_usable_tokens": 200,
        "context_free_tokens": 0,
        "context_occupancy": 1.25,
    }
    assert len(FIGURES) == 25


@pytest.mark.requirement("eval.figures.unknown")
def test_what_nobody_reported_is_unknown_and_never_zero() -> None:
    nothing = read(
        {
            "root_session_id": "a",
            "complete": False,
            "totals": {"sessions": 0, "turns": 0, "function_calls": 0, "function_call_errors": 0},
            "by_session": [],
        }
    )
    found = summary(nothing)
    zero = {"generations", "function_calls", "function_call_errors", "sessions", "descendants"}
    assert {name for name, value in found.items() if value == 0} == zero
    assert all(value is None for name, value in found.items() if name not in zero)


@pytest.mark.requirement("eval.figures.unknown")
@pytest.mark.parametrize(
    ("totals", "unknown"),
    [
        ({"input_tokens": None}, {"input_tokens", "total_tokens", "tokens_per_generation"}),
        ({"output_tokens": ...}, {"output_tokens", "total_tokens", "tokens_per_generation"}),
        ({"cost_usd": None}, {"subject_cost_usd", "cost_per_generation_usd"}),
        ({"turns": 0}, {"tokens_per_generation", "cost_per_generation_usd"}),
        ({"function_calls": 0, "function_call_errors": 0}, {"function_error_rate"}),
    ],
)
def test_one_unknown_makes_unknown_what_is_made_of_it_and_nothing_else(totals: Any, unknown: set[str]) -> None:
    found = summary(with_totals(**totals))
    assert {name for name, value in found.items() if value is None} == unknown


@pytest.mark.requirement("eval.figures.context")
def test_the_context_is_that_of_the_root_alone() -> None:
    made = copy.deepcopy(FULL)
    del made["by_session"][0]["context"]
    found = summary(read(made))
    assert [found[name] for name in FIGURES if name.startswith("context_")] == [None] * 4
    assert found["compacted_sessions"] == 0
    made["by_session"][0]["context"] = {**CONTEXT, "usable": 0, "total": 0}
    found = summary(read(made))
    assert (found["context_occupancy"], found["context_usable_tokens"], found["context_total_tokens"]) == (None, 0, 0)
    del made["by_session"][2]["context"], made["by_session"][0]["context"]
    assert summary(read(made))["compacted_sessions"] is None


@pytest.mark.requirement("eval.figures.saturates")
def test_a_sum_ends_at_the_largest_count() -> None:
    found = summary(with_totals(input_tokens=MOST, output_tokens=MOST))
    assert found["total_tokens"] == MOST


@pytest.mark.requirement("eval.figures.delta")
@pytest.mark.parametrize(
    ("value", "baseline", "absolute", "percent"),
    [
        (110, 100, 10.0, 10.0),
        (50, 100, -50.0, -50.0),
        (100, 100, 0.0, 0.0),
        (0, 0, 0.0, None),
        (5, 0, 5.0, None),
        (None, 5, None, None),
        (5, None, None, None),
        (1.0, 5e-324, 1.0, None),
        (1e308, -1e308, None, None),
    ],
)
def test_a_delta_is_a_difference_and_its_share_of_the_baseline(
    value: Any, baseline: Any, absolute: Any, percent: Any
) -> None:
    assert delta(value, baseline) == {"absolute": absolute, "percent": percent}


counts = st.integers(0, MOST)
money = st.floats(0, allow_nan=False, allow_infinity=False)


@st.composite
def metrics(draw: st.DrawFn) -> SessionMetricsResponseV1:
    made = copy.deepcopy(FULL)
    totals = made["totals"]
    for name in ("sessions", "turns", "function_calls", "function_call_errors"):
        totals[name] = draw(counts)
    for name in COUNTERS:
        totals[name] = draw(st.none() | (money if name == "cost_usd" else counts))
    made["by_session"] = draw(st.lists(st.sampled_from(made["by_session"]), max_size=4))
    if draw(st.booleans()):
        made["traces"] = None
    return read(made)


@pytest.mark.requirement("eval.figures.metamorphic")
@given(st.lists(st.none() | metrics(), min_size=2, max_size=5), st.data())
def test_the_order_of_sessions_orders_deltas_and_changes_none(
    trees: list[SessionMetricsResponseV1 | None], data: st.DataObject
) -> None:
    found = [None if tree is None else summary(tree) for tree in trees]
    baseline = data.draw(st.integers(0, len(found) - 1))
    order = data.draw(st.permutations(range(len(found))))
    straight = [deltas(one, found[baseline]) for one in found]
    assert [deltas(found[place], found[baseline]) for place in order] == [straight[place] for place in order]
    own = straight[baseline]
    for name in FIGURES:
        value = (found[baseline] or {}).get(name)
        assert own[name]["absolute"] == (None if value is None else 0.0)
        assert own[name]["percent"] == (None if not value else 0.0)


@pytest.mark.requirement("eval.figures.metamorphic")
@given(metrics(), metrics())
def test_swapping_two_sessions_changes_the_sign(
    left: SessionMetricsResponseV1, right: SessionMetricsResponseV1
) -> None:
    there, back = deltas(summary(left), summary(right)), deltas(summary(right), summary(left))
    for name in FIGURES:
        forth, again = there[name]["absolute"], back[name]["absolute"]
        assert forth is None if again is None else forth == -again


@pytest.mark.requirement("eval.figures.metamorphic")
@given(metrics(), metrics(), st.sampled_from(COUNTERS))
def test_unknown_stays_unknown_and_no_number_is_not_a_number(
    left: SessionMetricsResponseV1, right: SessionMetricsResponseV1, name: str
) -> None:
    without = left.model_copy(update={"totals": left.totals.model_copy(update={name: None})})
    figure = "subject_cost_usd" if name == "cost_usd" else name
    found = deltas(summary(without), summary(right))
    assert found[figure] == {"absolute": None, "percent": None}
    assert deltas(summary(right), summary(without))[figure] == {"absolute": None, "percent": None}
    numbers = [n for one in found.values() for n in one.values()] + list(summary(left).values())
    assert all(math.isfinite(number) for number in numbers if number is not None)
    json.dumps(found, allow_nan=False)
