"""The committed page against its source."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from iii_console.assets import STATIC

PAGE = STATIC.parents[2] / "page"


@pytest.mark.requirement("page.built")
def test_the_committed_files_are_what_the_source_builds() -> None:
    if shutil.which("node") is None or not (PAGE / "node_modules").is_dir():
        how = "building the page needs Node and its packages: npm ci --prefix packages/console/page"
        if os.environ.get("CI"):
            pytest.fail(how)
        pytest.skip(how)
    done = subprocess.run(["npm", "run", "--silent", "check"], cwd=PAGE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
