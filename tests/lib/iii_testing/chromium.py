"""The browser that the page is tested in: the system's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOW = "no Chromium on PATH: install it (apt install chromium), or name one in III_CHROMIUM"

REBOUND = "rebound.test"
"""A name that leads to this machine, as one of an attacker would."""


def chromium() -> str:
    """The browser's program; without one the test is skipped, and fails under CI, which installs it."""
    found = os.environ.get("III_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(HOW)
        pytest.skip(HOW)
    return found


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A browser without a window."""
    program = chromium()
    with sync_playwright() as playwright:
        arguments = [f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1", "--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
