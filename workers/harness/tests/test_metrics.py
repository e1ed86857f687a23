"""Counting: null is not zero, totals over generations, traces where the engine has some."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from iii_contracts.harness.metrics import METRICS, MetricsRequest
from iii_harness.metrics import COUNTERS, Metrics, summed
from iii_harness.record import Options, TurnRecord
from iii_harness.trace_metrics import GROUP_BY
from iii_harness.tree import SessionTrees
from iii_kit.bus import Invocation
from iii_kit.errors import BusError, CodedError
from iii_testing.answers import Answers

CALL = Invocation("harness::metrics")
FULL = {"input": 10, "output": 5, "cache_read": 1, "cache_write": 2, "reasoning": 3, "cost_usd": 0.25}


def assistant(usage: dict | None, *calls: str) -> dict:
    content = [{"type": "function_call", "id": i, "function_id": "agent_trigger", "arguments": {}} for i in calls]
    message = {
        "role": "assistant",
        "content": content,
        "stop_reason": "end",
        "model": "m",
        "provider": "p",
        "timestamp": 1,
    }
    return message if usage is None else {**message, "usage": usage}


def result(call_id: str, is_error: bool) -> dict:
    return {
        "role": "function_result",
        "function_call_id": call_id,
        "function_id": "f",
        "content": [],
        "details": None,
        "is_error": is_error,
        "timestamp": 1,
    }


class Store(Answers):
    """Sessions with transcripts, records and an engine that may keep traces."""

    def __init__(self, transcripts: dict[str, list[dict]], parents: dict[str, str] | None = None) -> None:
        super().__init__()
        self.transcripts, self.parents = transcripts, parents or {}
        self.records = {i: self.record(i, "completed") for i in transcripts}
        self.contexts: dict[str, dict] = {}
        self.answers = {
            "session::get": lambda r: {"meta": self.meta(r["session_id"])} if r["session_id"] in transcripts else None,
            "session::list": lambda r: {
                "sessions": [self.meta(i) for i, p in self.parents.items() if p == r["metadata"]["parent_session_id"]]
            },
            "session::messages": self.messages,
        }

    def messages(self, request):
        entries = [{"entry_id": f"e{n}", "message": m} for n, m in enumerate(self.transcripts[request["session_id"]])]
        at = int(request.get("cursor", 0))
        more = {"next_cursor": str(at + 2)} if at + 2 < len(entries) else {}
        return {"messages": entries[at : at + 2], **more}

    def meta(self, session_id):
        parent = self.parents.get(session_id)
        return {"session_id": session_id, "metadata": {} if parent is None else {"parent_session_id": parent}}

    def record(self, session_id, status) -> TurnRecord:
        return TurnRecord(
            turn_id="t", session_id=session_id, status=status, options=Options(model="m"), created_at=0, updated_at=0
        )

    async def measure(self, **request):
        async def load(session_id):
            return self.records.get(session_id)

        async def context(session_id):
            return self.contexts.get(session_id)

        metrics = Metrics(self, SessionTrees(self), load, context)
        answer = await metrics.metrics(MetricsRequest(**request), CALL)
        Draft7Validator(METRICS.response_schema).validate(answer)
        return answer


@pytest.mark.requirement("prompt.metrics.null")
@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([], None),
        ([None], None),
        ([None, None], None),
        ([3], 3),
        ([3, None], 3),
        ([None, 3, 4], 7),
        ([3, None, None], None),
        ([0], 0),
        ([0, None], 0),
        ([0.5, 0.25], 0.75),
    ],
)
def test_one_open_generation_is_let_pass_more_make_it_unknown(values, total) -> None:
    assert summed(values) == total


@pytest.mark.requirement("prompt.metrics.null")
@given(st.lists(st.none() | st.integers(0, 100), max_size=8))
def test_a_sum_is_known_exactly_when_something_is_reported_and_at_most_one_is_not(values) -> None:
    known = any(v is not None for v in values) and values.count(None) <= 1
    assert summed(values) == (sum(v for v in values if v is not None) if known else None)


@pytest.mark.anyio
@pytest.mark.requirement("prompt.metrics.totals")
async def test_a_session_is_counted_over_all_pages_of_its_path() -> None:
    store = Store(
        {"r": [assistant(FULL, "a", "b"), result("a", True), result("b", False), assistant(FULL), assistant(None)]}
    )
    answer = await store.measure(root_session_id="r")
    totals = answer["totals"]
    assert (totals["sessions"], totals["turns"], totals["function_calls"], totals["function_call_errors"]) == (
        1,
        3,
        2,
        1,
    )
    assert {name: totals[name] for name in COUNTERS} == {
        "input_tokens": 20,
        "output_tokens": 10,
        "cache_read_tokens": 2,
        "cache_write_tokens": 4,
        "reasoning_tokens": 6,
        "cost_usd": 0.5,
    }
    assert answer["by_session"] == [
        {"session_id": "r", "depth": 0, **{k: v for k, v in totals.items() if k != "sessions"}}
    ]
    assert answer["complete"] is True
    assert "traces" not in answer
    assert all(r["include_image_data"] is False for r in store.asked("session::messages"))


@pytest.mark.anyio
@pytest.mark.requirement("prompt.metrics.totals")
async def test_totals_apply_the_rule_to_generations_not_to_sessions() -> None:
    partial = [assistant(FULL), assistant(None)]
    store = Store({"r": partial, "c": partial}, {"c": "r"})
    answer = await store.measure(session_id="c")
    assert [row["input_tokens"] for row in answer["by_session"]] == [10, 10]
    assert answer["totals"]["input_tokens"] is None
    assert answer["totals"]["cost_usd"] is None
    assert answer["root_session_id"] == "r"
    assert answer["by_session"][1]["parent_session_id"] == "r"
    fewer = Store({"r": [assistant(None)], "c": [assistant(FULL)]}, {"c": "r"})
    answer = await fewer.measure(root_session_id="r")
    assert [row["input_tokens"] for row in answer["by_session"]] == [None, 10]
    assert answer["totals"]["input_tokens"] == 10


@pytest.mark.anyio
@pytest.mark.requirement("prompt.metrics.unknown")
async def test_an_unknown_session_has_zeros_nulls_and_no_rows() -> None:
    answer = await Store({}).measure(session_id="x")
    assert answer["root_session_id"] == "x"
    assert answer["complete"] is False
    assert answer["by_session"] == []
    assert {answer["totals"][k] for k in ("sessions", "turns", "function_calls", "function_call_errors")} == {0}
    assert {answer["totals"][k] for k in COUNTERS} == {None}


@pytest.mark.anyio
@pytest.mark.requirement("prompt.metrics.complete")
@pytest.mark.parametrize(
    ("status", "complete"),
    [
        ("completed", True),
        ("failed", True),
        ("cancelled", True),
        ("running", False),
        ("awaiting_functions", False),
        (None, False),
    ],
)
async def test_a_tree_is_complete_when_every_turn_is_over(status, complete) -> None:
    store = Store({"r": [], "c": []}, {"c": "r"})
    store.records["c"] = None if status is None else store.record("c", status)
    assert (await store.measure(root_session_id="r"))["complete"] is complete


@pytest.mark.anyio
@pytest.mark.requirement("prompt.metrics.strict")
@pytest.mark.parametrize(
    "message", [None, {}, {"role": "assistant"}, {**assistant(FULL), "timestamp": "late"}, {"role": "odd"}]
)
async def test_an_entry_that_cannot_be_read_fails_instead_of_being_left_out(message) -> None:
    with pytest.raises(CodedError, match="entry 'e1' of session r") as caught:
        await Store({"r": [assistant(FULL), message]}).measure(root_session_id="r")
    assert caught.value.code == "harness/dependency"


@pytest.mark.anyio
@pytest.mark.requirement("prompt.metrics.strict")
async def test_a_store_that_fails_is_a_dependency_error() -> None:
    store = Store({"r": []})
    store.answers["session::messages"] = BusError("TIMEOUT", "late")
    with pytest.raises(CodedError, match="harness/dependency: session::messages"):
        await store.measure(root_session_id="r")


def group(session_id: str, traces: list[str], spans: int, errors: int, first: int, last: int) -> dict:
    return {
        "value": session_id,
        "label": None,
        "trace_ids": traces,
        "span_count": spans,
        "error_count": errors,
        "first_seen_ms": first,
        "last_seen_ms": last,
        "duration_ms": last - first,
    }


@pytest.mark.anyio
@pytest.mark.requirement("prompt.metrics.traces")
async def test_traces_are_counted_by_session_and_over_the_tree() -> None:
    store = Store({"r": [], "c": [], "d": []}, {"c": "r", "d": "r"})
    groups = [
        group("r", ["t1", "t2"], 5, 1, 100, 300),
        group("c", ["t2"], 3, 0, 50, 200),
        group("x", ["t9"], 9, 9, 0, 999),
    ]
    store.answers[GROUP_BY] = {"groups": groups, "storage": {}}
    traces = (await store.measure(root_session_id="r"))["traces"]
    assert store.asked(GROUP_BY) == [{"attribute": "iii.session.id", "limit": 4294967295, "include_internal": True}]
    rows = traces.pop("by_session")
    assert traces == {"trace_count": 2, "span_count": 8, "error_span_count": 1, "duration_ms": 250}
    assert [(r["session_id"], r["trace_count"], r["span_count"], r["duration_ms"]) for r in rows] == [
        ("r", 2, 5, 200),
        ("c", 1, 3, 150),
        ("d", 0, 0, 0),
    ]


@pytest.mark.anyio
@pytest.mark.requirement("prompt.metrics.traces")
@pytest.mark.parametrize(
    "answer", [BusError("TIMEOUT", "late"), None, [], {"groups": None}, {"groups": [{"value": "r"}]}]
)
async def test_an_engine_without_traces_leaves_them_out(answer) -> None:
    store = Store({"r": []})
    store.answers[GROUP_BY] = answer
    assert "traces" not in await store.measure(root_session_id="r")


@pytest.mark.requirement("prompt.metrics.null")
def test_costs_are_added_without_drift() -> None:
    assert summed([0.1] * 10) == math.fsum([0.1] * 10) == 1.0
