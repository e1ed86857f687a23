"""A worker in a process of its own, on plain iii-sdk, whose function the agent calls (issue: the first message)."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iii_kit.sdk_bus import SdkBus, SdkOptions
from iii_testing.bad_requests import served, wrong_answers
from iii_testing.processes import COMMAND, StackProcess

ADDER = Path(__file__).with_name("adder.py")


@pytest.fixture(scope="module")
def adder(stack: StackProcess) -> Iterator[subprocess.Popen[str]]:
    worker = subprocess.Popen([sys.executable, str(ADDER), stack.url], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "registered\n"
    yield worker
    worker.terminate()
    rest, _ = worker.communicate(timeout=10)
    assert rest == "", "a function was called more often than the tests asked for"


@pytest.mark.requirement("stack.other-worker")
def test_the_agent_calls_a_function_of_another_process(stack: StackProcess, adder: subprocess.Popen[str]) -> None:
    assert adder.stdout is not None
    assert stack.call("demo::add", {"a": 1, "b": 2}) == {"sum": 3}
    assert adder.stdout.readline() == "called\n"
    done = stack.cli("chat", 'call demo::add {"a": 20, "b": 22}')
    assert done.returncode == 0, done.stderr
    assert "→ demo::add" in done.stderr
    assert adder.stdout.readline() == "called\n"
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


@pytest.mark.requirement("stack.chat.interrupted")
def test_ctrl_c_stops_the_turn_and_exits_with_130(stack: StackProcess, adder: subprocess.Popen[str]) -> None:
    assert adder.stdout is not None
    chat = subprocess.Popen(
        [COMMAND, "chat", "call demo::wait {}"],
        env=stack.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert adder.stdout.readline() == "waiting\n"
    chat.send_signal(signal.SIGINT)
    _, told = chat.communicate(timeout=30)
    assert chat.returncode == 130
    assert "stopped" in told
    session = stack.json("sessions")["sessions"][0]["session_id"]
    assert stack.json("status", session)["status"] == "cancelled"
    assert stack.json("show", session)["session"]["status"] == "done"


@pytest.mark.requirement("stack.chat.conversation")
def test_a_line_sent_while_the_agent_works_steers_it(stack: StackProcess, adder: subprocess.Popen[str]) -> None:
    assert adder.stdout is not None
    chat = subprocess.Popen(
        [COMMAND, "chat"],
        env=stack.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    assert chat.stdin is not None
    assert chat.stderr is not None
    chat.stdin.write("call demo::wait {}\n")
    assert adder.stdout.readline() == "waiting\n"
    chat.stdin.write("never mind\n")
    for line in chat.stderr:
        if "steers the running turn" in line:
            break
    session = stack.json("sessions")["sessions"][0]["session_id"]
    assert stack.json("stop", session) == {"stopping": True}
    _, told = chat.communicate(timeout=30)
    assert "turn cancelled" in told
    assert chat.returncode == 1


@pytest.mark.anyio
@pytest.mark.requirement("stack.bad-input")
async def test_bad_input_is_answered_alike_wherever_a_function_is_served(stack: StackProcess) -> None:
    bus = SdkBus(SdkOptions("bad-input", url=stack.url))
    try:
        await bus.connected()
        sent, wrong = await wrong_answers(bus, await served(bus), every=20)
    finally:
        await bus.close()
    assert wrong == []
    assert sent > 50
