"""The command line itself: what it imports, what it lists, and how it answers to wrong usage."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from iii_stack import cli
from iii_stack.commands import doctor

HEAVY = (
    "httpx", "iii", "iii_contracts", "iii_embedded", "iii_eval", "iii_harness", "iii_kit.bus", "iii_queue",
    "iii_siblings", "iii_store", "jsonschema_rs", "msgspec", "opentelemetry", "prompt_toolkit", "pydantic", "sqlite3",
    "structlog", "uvloop", "websockets",
)  # fmt: skip
"""What costs time to import, and is of no use to help and to errors of usage."""

HELP_ALONE = (*HEAVY, "asyncio", "iii_stack.commands", "rich")
"""What the program itself does not import, before it knows which command it is to run."""


def imported(code: str) -> set[str]:
    """Modules that a fresh interpreter has after running `code`."""
    told = "import sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{told}"], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.requirement("stack.cli.lazy")
@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import iii_stack.cli", HELP_ALONE),
        ("import iii_stack.cli; iii_stack.cli.run(['--help'])", HEAVY),
        ("import iii_stack.cli; iii_stack.cli.run(['call', 'a::b', '{'])", HEAVY),
        ("import iii_stack.asking", ("httpx", "iii", "opentelemetry", "pydantic", "rich", "structlog")),
        (
            "import iii_stack.compose",
            ("cyclopts", "httpx", "iii", "iii_sdk", "prompt_toolkit", "rich", "yaml"),
        ),
    ],
)
def test_nothing_is_imported_that_is_not_used(code: str, unwanted: tuple[str, ...]) -> None:
    assert imported(code) & set(unwanted) == set()


@pytest.mark.requirement("stack.cli.lazy")
def test_help_still_says_what_each_command_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--help"]) == 0
    told = capsys.readouterr().out
    for name in (*cli.COMMANDS, "eval"):
        assert name in told
    assert "List sessions, the last changed first." in told


@pytest.mark.requirement("stack.cli.usage")
@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        (["--data-dir", "a b", "chat", "hi"], "iii-stack chat --data-dir 'a b' hi"),
        (["--bus", "ws://127.0.0.1:1"], "iii-stack COMMAND --bus ws://127.0.0.1:1"),
    ],
)
def test_an_option_before_the_command_is_told_its_place(
    arguments: list[str], right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(arguments) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"{arguments[0]}: options come after the command" in told
    assert right in told


@pytest.mark.requirement("stack.cli.usage")
@pytest.mark.parametrize("as_json", [False, True])
def test_an_argument_that_is_not_json_is_wrong_usage(*, as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["call", "demo::add", "{a: 1}", *(["--json"] if as_json else [])]) == 2
    told = capsys.readouterr()
    if as_json:
        assert json.loads(told.out)["error"]["code"] == "invalid_json"
    else:
        assert "the argument is not JSON" in told.err


@pytest.mark.requirement("stack.cli.usage")
@pytest.mark.parametrize("count", [1, 6])
def test_a_comparison_of_too_few_or_too_many_says_how_many(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["eval", "compare", *(f"s_{n}" for n in range(count))]) == 2
    assert f"name 2 to 5 sessions, not {count}" in capsys.readouterr().err


@pytest.mark.requirement("stack.doctor")
@pytest.mark.parametrize(
    ("configured", "models", "problem"),
    [(False, [], ": no key"), (True, ["openai/m"], ""), (True, ["scripted/demo"], "OPENAI_BASE_URL")],
)
def test_doctor_says_what_keeps_a_provider_from_answering(configured: bool, models: list[str], problem: str) -> None:
    told = doctor._problem({"id": "openai", "configured": configured}, models)
    assert problem in told
    assert bool(told) is bool(problem)
