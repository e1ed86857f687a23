"""A browser, a stack with a page, and a page that must not complain."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from iii_testing.chromium import running_browser
from iii_testing.page_desk import Desk
from iii_testing.processes import StackProcess

expect.set_options(timeout=15_000)

HARMLESS = ("ERR_CONNECTION_REFUSED", "WebSocket connection to")
"""What a browser itself writes while the stack is away."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[StackProcess]:
    running = StackProcess(tmp_path_factory.mktemp("page") / "data", "--page-port", "0")
    yield running
    running.end()


@pytest.fixture(scope="session")
def shared_desk(stack: StackProcess) -> Iterator[Desk]:
    desk = Desk(stack)
    yield desk
    desk.close()


@pytest.fixture
def desk(shared_desk: Desk) -> Iterator[Desk]:
    shared_desk.gate.shut()
    yield shared_desk
    shared_desk.gate.release()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    opened.set_default_timeout(15_000)
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab; what it complains about fails the test: errors of scripts, and whatever its policy had to stop."""
    complaints: list[str] = []
    opened = context.new_page()
    opened.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    opened.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    yield opened
    assert [each for each in complaints if not any(harmless in each for harmless in HARMLESS)] == []


@pytest.fixture
def address(stack: StackProcess) -> str:
    return stack.ready["page"]
