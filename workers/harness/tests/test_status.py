"""The report of a turn, lean and whole, against its contract."""

import pytest
from jsonschema import Draft7Validator
from msgspec.structs import replace

from iii_contracts.harness.status import STATUS, StatusRequest
from iii_harness.queue_rows import QueueRow
from iii_harness.record import Checkpoint, Options, TurnRecord
from iii_harness.status import CUT, LEAN_RESULT, StatusReader, cut
from iii_kit.bus import Invocation

pytestmark = pytest.mark.anyio
CALL = Invocation("harness::status")
RUNNING = TurnRecord(
    turn_id="t_1", session_id="s_1", status="running", options=Options(model="m"), created_at=0, updated_at=0
)
USER = {"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 1}
SNAPSHOT = {
    "session_id": "s_1",
    "turn_id": "t_1",
    "step": 0,
    "model": "m",
    "usable": 10,
    "effective_max_output_tokens": 1,
    "total": 4,
    "free": 6,
    "categories": {
        "system_prompt": 1,
        "tools": 1,
        "overhead": 1,
        "messages": {"user": 1, "assistant": 0, "function_result": 0, "custom": 0},
    },
    "compacted": False,
    "timestamp": 3,
}


class Reader:
    def __init__(self, record: TurnRecord | None, rows=(), context=None) -> None:
        self.repaired: list[str] = []
        self._record, self._rows, self._context = record, rows, context

    async def __call__(self, **request):
        async def load(_):
            return self._record

        async def parked(_):
            return self._rows

        async def context(_):
            return self._context

        reader = StatusReader(load, parked, context, self.repaired.append)
        report = await reader.status(StatusRequest(session_id="s_1", **request), CALL)
        Draft7Validator(STATUS.response_schema).validate(report)
        return report


@pytest.mark.requirement("prompt.status.lean")
async def test_a_lean_report_always_has_limit_and_calls_in_flight() -> None:
    assert await Reader(RUNNING)() == {
        "session_id": "s_1",
        "turn_id": "t_1",
        "status": "running",
        "step": 0,
        "turn_count": 0,
        "children": [],
        "expects_wake": False,
        "max_turns": 16,
        "pending_function_calls": [],
        "result_error": None,
    }


@pytest.mark.requirement("prompt.status.lean")
async def test_calls_in_flight_are_the_started_and_the_waiting_ones() -> None:
    calls = {
        "a": Checkpoint(state="done"),
        "b": Checkpoint(state="triggered"),
        "c": Checkpoint(state="pending"),
        "d": Checkpoint(state="done", child_session_id="s_2", child_turn_id="t_2"),
    }
    report = await Reader(replace(RUNNING, calls=calls))()
    assert report["pending_function_calls"] == ["b", "c"]
    assert report["children"] == [{"function_call_id": "d", "session_id": "s_2", "turn_id": "t_2"}]


@pytest.mark.requirement("prompt.status.cut")
async def test_a_long_result_is_cut_by_characters_unless_verbose() -> None:
    exact, long = "ä" * (LEAN_RESULT - 2), "ä" * (LEAN_RESULT - 1)
    assert cut(exact) == exact
    assert cut(long) == f'"{"ä" * (LEAN_RESULT - 1)}{CUT}'
    assert cut({"a": 1}) == {"a": 1}
    ended = replace(RUNNING, status="completed", result=long)
    assert (await Reader(ended)())["result"].endswith(CUT)
    assert (await Reader(ended)(verbose=True))["result"] == long


@pytest.mark.requirement("prompt.status.verbose")
async def test_a_whole_report_adds_counters_rows_and_context() -> None:
    row = QueueRow("q_1", "s_1", USER, "e_q_1", 5, fs_root="/secret")
    report = await Reader(RUNNING, (row,), SNAPSHOT)(verbose=True)
    assert report["queued"] == [
        {"id": "q_1", "session_id": "s_1", "message": USER, "entry_id": "e_q_1", "queued_at": 5}
    ]
    assert report["context"] == SNAPSHOT
    assert report["partial_result_available"] is False
    assert (report["max_validation_retries"], report["max_transient_resumes"], report["depth"]) == (2, 1, 0)
    bare = await Reader(RUNNING)(verbose=True)
    assert not {"queued", "context", "armed_wakes", "result_error"} & bare.keys()
    failed = replace(RUNNING, status="failed", result="part", result_error="why", stop_reason="max_turns")
    report = await Reader(failed)(verbose=True)
    assert (report["partial_result_available"], report["result_error"], report["stop_reason"]) == (
        True,
        "why",
        "max_turns",
    )


@pytest.mark.requirement("prompt.status.repair")
async def test_a_missing_or_ended_turn_has_its_session_repaired() -> None:
    for record, repaired in ((None, ["s_1"]), (RUNNING, []), (replace(RUNNING, status="completed"), ["s_1"])):
        reader = Reader(record)
        assert (await reader() is None) == (record is None)
        assert reader.repaired == repaired
