"""What a started stack tells people to type works where they type it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from iii_stack.commands.up import tell
from iii_stack.data_directory import DataDirectory, usual

pytestmark = pytest.mark.requirement("stack.up.told")

RUNNING = {"bus": "ws://127.0.0.1:1", "page": None, "pid": 1}


def test_the_program_is_named_as_it_was_called_when_no_path_leads_to_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", ["some where/iii-stack", "up"])
    tell(RUNNING, DataDirectory(usual()), as_json=False)
    assert "  'some where/iii-stack' sessions\n" in capsys.readouterr().out


def test_a_directory_of_its_own_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = tmp_path / "iii-stack"
    program.touch(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(program), "up"])
    tell(RUNNING, DataDirectory(tmp_path / "my data"), as_json=False)
    out = capsys.readouterr().out
    assert f"  iii-stack chat --data-dir '{tmp_path}/my data' \"What can you do here?\"\n" in out
