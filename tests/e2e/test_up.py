"""Starting and ending the stack as a process (siblings 17.3, 17.4; design "Decided interfaces")."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from iii_testing.processes import COMMAND, StackProcess, environment, inside


@pytest.mark.requirement("stack.up.ready-line")
def test_the_first_line_tells_where_the_stack_is_and_stack_json_tells_it_too(stack: StackProcess) -> None:
    page = stack.ready["page"]
    assert stack.ready == {"ready": True, "bus": stack.url, "page": page, "pid": stack.process.pid}
    assert stack.url.startswith("ws://127.0.0.1:")
    assert page.startswith("http://127.0.0.1:")
    announced = json.loads((stack.data / "stack.json").read_text())
    assert announced == {"bus": stack.url, "page": page, "pid": stack.process.pid}


@pytest.mark.requirement("page.part")
def test_the_page_can_be_left_out(tmp_path: Path) -> None:
    without = StackProcess(tmp_path / "data", "--without", "page")
    assert without.ready["page"] is None
    assert without.end() == 0


@pytest.mark.requirement("page.port")
def test_a_page_port_that_is_taken_is_refused_with_the_option_to_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ("up", "--port", "0", "--page-port", str(port))
        refused = inside(*arguments, env=environment(tmp_path / "data"))
    assert refused.returncode == 1
    assert str(port) in refused.stderr
    assert "--page-port" in refused.stderr


@pytest.mark.requirement("stack.data.private")
def test_the_data_directory_is_for_its_owner_alone(stack: StackProcess) -> None:
    assert stat.S_IMODE(stack.data.stat().st_mode) == 0o700


@pytest.mark.requirement("stack.data.exclusive")
def test_a_second_stack_on_the_directory_gets_a_clear_error(stack: StackProcess) -> None:
    second = inside("up", "--port", "0", env=stack.env)
    assert second.returncode == 1
    assert str(stack.process.pid) in second.stderr
    assert "--data-dir" in second.stderr
    as_json = inside("up", "--port", "0", "--json", env=stack.env)
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["error"]["code"] == "data_directory_in_use"


@pytest.mark.requirement("stack.up.port-in-use")
def test_a_busy_port_is_an_error_that_names_the_option(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        done = inside("up", "--port", str(port), env=environment(data))
    assert done.returncode == 1
    assert str(port) in done.stderr
    assert "--port" in done.stderr


@pytest.mark.requirement("stack.up.exposed")
def test_beyond_loopback_is_refused_without_a_token(data: Path) -> None:
    done = inside("up", "--host", "0.0.0.0", "--port", "0", env=environment(data))
    assert done.returncode == 1
    assert "III_TOKEN" in done.stderr


@pytest.mark.requirement("stack.up.without")
def test_an_unknown_part_is_refused_by_name(data: Path) -> None:
    done = inside("up", "--without", "harness,engine", env=environment(data))
    assert done.returncode == 1
    assert "engine" in done.stderr


@pytest.mark.requirement("stack.up.ends-cleanly")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_exits_with_0_and_the_next_start_is_quick(data: Path, number: signal.Signals) -> None:
    first = StackProcess(data)
    assert first.end(number) == 0
    assert not (data / "stack.json").exists()
    second = StackProcess(data)
    try:
        assert second.seconds < 3 * max(1.0, os.getloadavg()[0])
    finally:
        assert second.end() == 0


@pytest.mark.requirement("stack.data.exclusive")
def test_the_lock_of_a_killed_stack_is_free_and_what_was_said_is_there(data: Path) -> None:
    first = StackProcess(data)
    assert first.cli("chat", "hello").returncode == 0
    sessions = first.json("sessions")["sessions"]
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    gone = inside("sessions", env=first.env)
    assert gone.returncode == 1
    assert "iii-stack up" in gone.stderr
    second = StackProcess(data)
    try:
        assert second.json("sessions")["sessions"] == sessions
    finally:
        second.end()


@pytest.mark.requirement("stack.cli.no-stack")
def test_without_a_stack_every_command_says_how_to_start_one(data: Path) -> None:
    for command in (("sessions",), ("show", "s"), ("status", "s"), ("stop", "s"), ("call", "a::b"), ("chat", "hi")):
        done = inside(*command, env=environment(data))
        assert done.returncode == 1, command
        assert "iii-stack up" in done.stderr, command
    elsewhere = inside("sessions", "--bus", "ws://127.0.0.1:9", "--json", env=environment(data))
    assert elsewhere.returncode == 1
    assert json.loads(elsewhere.stdout)["error"]["code"] == "not_connected"


@pytest.mark.requirement("stack.chat.survives")
def test_a_chat_lives_through_the_death_of_the_stack(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    first = StackProcess(data, port=port)
    chat = subprocess.Popen(
        [COMMAND, "chat", "hello"], env=first.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert chat.stdout is not None
    assert chat.stdout.read(20)
    first.end(signal.SIGKILL)
    assert chat.stderr is not None
    told = chat.stderr.readline()
    while told and "waiting for the stack" not in told:
        told = chat.stderr.readline()
    assert told, "the chat says that it waits"
    second = StackProcess(data, port=port)
    try:
        answer, told = chat.communicate(timeout=90)
        assert chat.returncode == 0, told
        assert "connected again" in told
        assert "What to try next" in answer
        session = second.json("sessions")["sessions"][0]["session_id"]
        entries = [entry["message"] for entry in second.json("show", session)["entries"] if "message" in entry]
        calls = [block for m in entries for block in m["content"] if block["type"] == "function_call"]
        results = [m for m in entries if m["role"] == "function_result"]
        assert [call["id"] for call in calls] == [result["function_call_id"] for result in results]
    finally:
        second.end()
