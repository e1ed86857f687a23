"""Reading and calling from the command line (design, "Decided interfaces")."""

from __future__ import annotations

import json

import pytest

from iii_testing.processes import StackProcess, cli, inside


@pytest.fixture(scope="module")
def session(stack: StackProcess) -> str:
    done = stack.cli("chat", "What can you do here?")
    assert done.returncode == 0, done.stderr
    return stack.json("sessions")["sessions"][0]["session_id"]


@pytest.mark.requirement("stack.chat.answers")
def test_chat_streams_the_answer_and_shows_the_call_as_it_runs(stack: StackProcess) -> None:
    done = cli("chat", "What can you do here?", env=stack.env)
    assert done.returncode == 0
    assert "demo" in done.stdout
    assert "→ engine::functions::list" in done.stderr
    assert "✓" in done.stderr
    assert "1 call" in done.stderr
    assert "engine::functions::list" not in done.stdout.splitlines()[0]


@pytest.mark.requirement("stack.chat.continues")
def test_chat_continues_a_session_and_shows_only_what_is_new(stack: StackProcess, session: str) -> None:
    before = len(stack.json("show", session)["entries"])
    done = stack.cli("chat", "--session", session, "call engine::workers::list {}")
    assert done.returncode == 0
    assert "→ engine::workers::list" in done.stderr
    assert "→ engine::functions::list" not in done.stderr
    assert len(stack.json("show", session)["entries"]) > before


@pytest.mark.requirement("stack.chat.conversation")
def test_lines_on_stdin_are_a_conversation(stack: StackProcess) -> None:
    done = stack.cli("chat", input="hello\n\ncall engine::workers::list {}\n")
    assert done.returncode == 0
    newest = stack.json("sessions")["sessions"][0]["session_id"]
    entries = stack.json("show", newest)["entries"]
    said = [
        entry["message"]["content"][0]["text"] for entry in entries if entry.get("message", {}).get("role") == "user"
    ]
    assert said == ["hello", "call engine::workers::list {}"]


@pytest.mark.requirement("stack.chat.refuses")
def test_chat_refuses_what_cannot_work_before_it_sends(stack: StackProcess) -> None:
    sessions = len(stack.json("sessions", "--limit", "500")["sessions"])
    for arguments, word in (
        (("--session", "nowhere", "hi"), "no session nowhere"),
        (("--model", "gpt", "hi"), "PROVIDER/MODEL"),
        (("--model", "nope/m", "hi"), "no provider nope"),
        (("--allow", "{a,b}", "hi"), "--allow"),
        ((" ",), "empty"),
    ):
        done = stack.cli("chat", *arguments)
        assert done.returncode == 1, arguments
        assert word in done.stderr
    assert len(stack.json("sessions", "--limit", "500")["sessions"]) == sessions


@pytest.mark.requirement("stack.chat.failed-turn")
def test_a_failed_turn_exits_with_1_and_says_why(stack: StackProcess) -> None:
    done = stack.cli("chat", "--model", "scripted/nothing", "hi")
    assert done.returncode == 1
    assert "failed" in done.stderr
    assert "iii-stack show" in done.stderr


@pytest.mark.requirement("stack.cli.json")
def test_reading_commands_print_exactly_the_wire_answer(stack: StackProcess, session: str) -> None:
    meta = stack.call("session::get", {"session_id": session})["meta"]
    assert meta in stack.json("sessions")["sessions"]
    shown = stack.json("show", session)
    assert set(shown) == {"session", "entries"}
    assert shown["session"] == meta
    assert [entry["entry_id"] for entry in shown["entries"]] == [
        item["entry_id"]
        for item in stack.call("session::messages", {"session_id": session, "limit": 500, "include_custom": True})[
            "messages"
        ]
    ]
    assert stack.json("status", session) == stack.call("harness::status", {"session_id": session})
    assert stack.json("stop", session) == {"stopping": False}


@pytest.mark.requirement("stack.cli.json")
def test_people_get_text(stack: StackProcess, session: str) -> None:
    assert session in stack.cli("sessions").stdout
    assert "> What can you do here?" in stack.cli("show", session).stdout
    assert "completed" in stack.cli("status", session).stdout
    assert "nothing runs" in stack.cli("stop", session).stdout


@pytest.mark.requirement("stack.cli.errors")
def test_errors_are_one_object_on_stdout_with_exit_1(stack: StackProcess) -> None:
    for command, code in (
        (("show", "nowhere"), "session/not_found"),
        (("stop", "nowhere"), "session/not_found"),
        (("call", "session::append", '{"session_id": "nowhere"}'), "session/not_found"),
        (("call", "session::append", '{"session_id": 3}'), "session/invalid_request"),
        (("call", "nobody::serves", "{}"), "function_not_found"),
    ):
        done = stack.cli(*command, "--json")
        assert done.returncode == 1, command
        assert json.loads(done.stdout)["error"]["code"] == code
        plain = stack.cli(*command)
        assert plain.returncode == 1
        assert plain.stdout == ""
        assert plain.stderr.startswith("error: ")
    assert stack.json("status", "nowhere") is None
    assert "no session nowhere" in stack.cli("status", "nowhere").stderr


@pytest.mark.requirement("stack.chat.fails-once")
def test_why_a_turn_failed_is_told_once(stack: StackProcess) -> None:
    done = stack.cli("chat", "--model", "scripted/nope", "hi")
    assert done.returncode == 1
    assert done.stderr.count("The answer could not be started.") == 1
    assert "turn failed\n" in done.stderr


@pytest.mark.requirement("stack.cli.usage")
def test_wrong_usage_exits_with_2(stack: StackProcess) -> None:
    for command in (
        ("show",),
        ("sessions", "--nope"),
        ("sessions", "--status", "odd"),
        ("nonsense",),
        ("up", "--port", "99999"),
        ("call", "a::b", "--timeout", "0"),
        ("call", "a::b", "{"),
        ("--json", "sessions"),
    ):
        assert stack.cli(*command).returncode == 2, command


@pytest.mark.requirement("stack.cli.help")
@pytest.mark.parametrize("command", ["up", "chat", "call", "sessions", "show", "status", "stop", "doctor"])
def test_help_teaches_with_an_example(stack: StackProcess, command: str) -> None:
    assert command in stack.cli("--help").stdout
    assert f"iii-stack {command}" in stack.cli(command, "--help").stdout.split("Usage:")[1].split("\n", 1)[1]


@pytest.mark.requirement("stack.doctor")
def test_doctor_tells_what_is_reachable_and_never_a_key(stack: StackProcess) -> None:
    done = inside("doctor", "--json", env={**stack.env, "OPENAI_API_KEY": "sk-secret-of-mine"})
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["bus"] == {"reachable": True, "url": stack.url}
    assert all(report["parts"].values())
    assert report["data"]["directory"] == str(stack.data)
    assert report["page"] == stack.ready["page"]
    assert {name for name, is_set in report["environment"].items() if is_set} == {"OPENAI_API_KEY"}
    assert "scripted/demo" in report["models"]
    assert "sk-secret" not in json.dumps(report)


@pytest.mark.requirement("stack.doctor")
def test_doctor_fails_without_a_bus(stack: StackProcess) -> None:
    done = inside("doctor", "--bus", "ws://127.0.0.1:9", "--json", env=stack.env)
    assert done.returncode == 1
    assert json.loads(done.stdout)["bus"]["reachable"] is False
