"""Two sessions compared, from the message to the matrix: in the stack and by `iii-eval` as a process of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from iii_testing.arrangements import PartProcess
from iii_testing.processes import StackProcess

COMPARE = "eval::compare-sessions"

LONG = 1_000
"""Messages of a long session."""

BOUND_S = 10.0
"""What a comparison of two long sessions may take on a busy machine."""


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StackProcess, PartProcess]]:
    """A stack without eval, and `iii-eval` to be started beside it."""
    place = tmp_path_factory.mktemp("apart")
    running = StackProcess(place / "data", "--without", "eval")
    worker = PartProcess("eval", running.url, place, running.env)
    yield running, worker
    if worker.runs:
        assert worker.end() == 0
    running.end()


def session(stack: StackProcess, name: str, *generations: dict[str, Any]) -> str:
    """A finished session whose generations report the usages given; all but the last call a function."""
    steps = [{"emit": [{"text": "hm"}, {"usage": usage}, call(n, name)]} for n, usage in enumerate(generations[:-1])]
    steps.append({"emit": [{"text": "done"}, {"usage": generations[-1]}]})
    sent = stack.call(
        "harness::send",
        {
            "message": name,
            "model": "demo",
            "provider": "scripted",
            "options": {
                "functions": {"allow": ["engine::functions::list"]},
                "provider_options": {"scripted": {"steps": steps}},
            },
        },
    )
    finished(stack, sent["session_id"])
    return sent["session_id"]


def call(number: int, name: str) -> dict[str, Any]:
    function = "engine::functions::list" if name != "denied" else "state::get"
    return {"call": {"function": function, "payload": {}, "id": f"c{number}"}}


def finished(stack: StackProcess, session_id: str) -> None:
    deadline = time.monotonic() + 30
    while stack.call("harness::metrics", {"session_id": session_id})["complete"] is not True:
        assert time.monotonic() < deadline, stack.json("status", session_id, "--verbose")
        time.sleep(0.01)


def two(stack: StackProcess) -> tuple[str, str]:
    short = session(stack, "short", {"input": 100, "output": 20, "cost_usd": 0.5})
    long = session(stack, "denied", {"input": 100, "output": 20, "cost_usd": 0.25}, {"input": 50, "output": 10})
    return short, long


def check(answer: dict[str, Any], short: str, long: str) -> None:
    """The figures that follow from the two scripts."""
    assert [item["session"]["session_id"] for item in answer["sessions"]] == [short, long]
    first, second = answer["sessions"]
    assert "errors" not in first
    assert first["lifecycle"]["turn_status"] == "completed"
    assert (first["lifecycle"]["terminal"], first["lifecycle"]["partial"]) == (True, False)
    assert first["summary"]["total_tokens"] == 120
    assert first["summary"]["subject_cost_usd"] == 0.5
    figures, deltas = second["summary"], second["deltas"]
    assert (figures["generations"], figures["total_tokens"], figures["tokens_per_generation"]) == (2, 180, 90.0)
    assert (figures["function_calls"], figures["function_call_errors"], figures["function_error_rate"]) == (1, 1, 1.0)
    assert deltas["total_tokens"] == {"absolute": 60.0, "percent": 50.0}
    assert deltas["function_calls"] == {"absolute": 1.0, "percent": None}
    assert deltas["cache_read_tokens"] == {"absolute": None, "percent": None}


@pytest.mark.requirement("eval.cli.compare")
def test_two_sessions_are_compared_in_the_stack(stack: StackProcess) -> None:
    short, long = two(stack)
    answer = stack.json("eval", "compare", short, long)
    check(answer, short, long)
    again = stack.call(COMPARE, {"session_ids": [short, long], "baseline_session_id": short})
    assert {**again, "captured_at": 0} == {**answer, "captured_at": 0}
    turned = stack.json("eval", "compare", short, long, "--baseline", long)
    assert turned["sessions"][0]["deltas"]["total_tokens"]["absolute"] == -60.0
    shown = stack.cli("eval", "compare", short, long)
    assert shown.returncode == 0
    assert "reference · turn completed" in shown.stdout
    row = next(line for line in shown.stdout.splitlines() if line.startswith("Tokens"))
    assert row.split() == ["Tokens", "120", "180", "+50%"]


@pytest.mark.requirement("eval.cli.errors")
def test_a_comparison_that_cannot_be_made_says_what_to_do(stack: StackProcess) -> None:
    known = stack.call("session::create", {})["session_id"]
    below = stack.call("session::create", {"metadata": {"parent_session_id": known}})["session_id"]
    for arguments, said, hint in (
        ((known, "nowhere"), "session not found: nowhere", "iii-stack sessions"),
        ((known, below), "metadata.parent_session_id", "root of its tree"),
        ((known, known), "unique", None),
        ((known, "x", "--baseline", "y"), "baseline_session_id", None),
    ):
        done = stack.cli("eval", "compare", *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert said in done.stderr
        assert hint is None or hint in done.stderr
        error = json.loads(stack.cli("eval", "compare", *arguments, "--json").stdout)["error"]
        assert error["code"] == "invocation_failed"
        assert said in error["message"]
    for arguments in ((), (known,), ("a", "b", "c", "d", "e", "f")):
        assert stack.cli("eval", "compare", *arguments).returncode == 2
    assert "iii-stack eval compare" in stack.cli("eval", "compare", "--help").stdout.split("Try:")[1]


@pytest.mark.requirement("eval.apart")
def test_a_process_of_its_own_serves_the_same(apart: tuple[StackProcess, PartProcess]) -> None:
    stack, worker = apart
    short, long = two(stack)
    missing = stack.cli("eval", "compare", short, long)
    assert missing.returncode == 1
    assert "iii-eval" in missing.stderr
    worker.start()
    check(stack.json("eval", "compare", short, long), short, long)
    worker.kill()
    worker.start()
    check(stack.json("eval", "compare", short, long), short, long)
    refused = stack.cli("eval", "compare", short, short, "--json")
    assert json.loads(refused.stdout)["error"] == {
        "code": "invocation_failed",
        "message": f"invalid request: `session_ids` must be unique, {short} is named more than once",
    }


@pytest.mark.requirement("eval.compare.bounded")
def test_long_sessions_are_compared_in_bounded_time(stack: StackProcess) -> None:
    made: list[str] = []
    for cost in (1, 2):
        session_id = stack.call("session::create", {})["session_id"]
        said = {"role": "user", "content": [{"type": "text", "text": "x" * 200}], "timestamp": 1}
        answered = {
            "role": "assistant",
            "content": [{"type": "text", "text": "y" * 200}],
            "stop_reason": "end",
            "model": "m",
            "provider": "p",
            "timestamp": 1,
            "usage": {"input": 10, "output": cost},
        }
        stack.call("session::append-many", {"session_id": session_id, "messages": [said, answered] * (LONG // 2)})
        made.append(session_id)
    started = time.monotonic()
    answer = stack.call(COMPARE, {"session_ids": made, "baseline_session_id": made[0]})
    assert time.monotonic() - started < BOUND_S
    assert [item["summary"]["generations"] for item in answer["sessions"]] == [LONG // 2] * 2
    assert answer["sessions"][1]["deltas"]["output_tokens"] == {"absolute": LONG / 2, "percent": 100.0}
