"""Rules of the page, run by Node: the same functions that the browser runs, without a browser."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[3] / "packages/console/page"
HOW = "the page's own rules need Node and its packages: npm ci --prefix packages/console/page"


def node_or_skip() -> None:
    """Skip where Node or the page's packages are missing; under CI, which installs them, fail."""
    if shutil.which("node") is None or not (PAGE / "node_modules").is_dir():
        if os.environ.get("CI"):
            pytest.fail(HOW)
        pytest.skip(HOW)


class PageModule:
    """One module of the page's source."""

    def __init__(self, path: str) -> None:
        node_or_skip()
        self._process = subprocess.Popen(
            ["node", "ask.mjs", path], cwd=PAGE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, function: str, *arguments: Any) -> Any:
        """What a function returns."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([function, *arguments]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        """End Node."""
        self._process.communicate()
