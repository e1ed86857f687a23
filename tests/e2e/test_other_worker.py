"""A worker in a process of its own, on plain iii-sdk, whose function the agent calls (issue: the first message)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from iii_testing.processes import StackProcess

ADDER = Path(__file__).with_name("adder.py")


@pytest.mark.requirement("stack.other-worker")
def test_the_agent_calls_a_function_of_another_process(stack: StackProcess) -> None:
    adder = subprocess.Popen([sys.executable, str(ADDER), stack.url], stdout=subprocess.PIPE, text=True)
    assert adder.stdout is not None
    try:
        assert adder.stdout.readline() == "registered\n"
        assert stack.call("demo::add", {"a": 1, "b": 2}) == {"sum": 3}
        assert adder.stdout.readline() == "called\n"
        done = stack.cli("chat", 'call demo::add {"a": 20, "b": 22}')
        assert done.returncode == 0, done.stderr
        assert "→ demo::add" in done.stderr
    finally:
        adder.terminate()
        rest, _ = adder.communicate(timeout=10)
    assert rest == "called\n"
    session = stack.json("sessions")["sessions"][0]["session_id"]
    results = [
        entry["message"]
        for entry in stack.json("show", session)["entries"]
        if entry.get("message", {}).get("role") == "function_result"
    ]
    assert [result["function_id"] for result in results] == ["demo::add"]
    assert "42" in results[0]["content"][0]["text"]
    totals = stack.call("harness::metrics", {"session_id": session})["totals"]
    assert totals["function_calls"] == 1
    assert totals["function_call_errors"] == 0
