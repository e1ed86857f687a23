"""The rules of the tree that tools hold: sizes, the requirements manifest, a tree that speaks of the product alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import limits  # noqa: E402
import requirements  # noqa: E402


def test_modules_functions_and_protocols_keep_their_sizes() -> None:
    assert limits.check() == []


def test_every_requirement_has_a_test_or_an_issue_and_no_test_names_an_unknown_one() -> None:
    assert requirements.check() == []


def test_no_absolute_path_of_a_machine_is_in_the_tree() -> None:
    words = ["/ho" + "me/", "/ro" + "ot/", "/wo" + "rk/"]
    found = subprocess.run(
        ["git", "grep", "-nIF", *(part for word in words for part in ("-e", word)), "--", ".", ":!uv.lock"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    assert [line for line in found if not line.startswith("tech-specs/spec/")] == []
