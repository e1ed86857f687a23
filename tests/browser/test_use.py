"""Who can use the page, and how: keyboard, names and roles, narrow screens, themes, strangers (siblings 15.3)."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from iii_testing.chromium import REBOUND
from iii_testing.page_desk import Desk, call, text
from iii_testing.page_reading import message_field, told
from iii_testing.processes import StackProcess

pytestmark = pytest.mark.slow

UNNAMED = """
() => [...document.querySelectorAll('button, a, input, select, textarea, summary, dialog, [role=log], [role=img]')]
  .filter((element) => element.checkVisibility())
  .filter((element) => {
    const by = element.getAttribute('aria-labelledby');
    const labels = [...(element.labels ?? [])].map((label) => label.textContent);
    const name = element.getAttribute('aria-label') ?? (by && document.getElementById(by)?.textContent)
      ?? (labels.join('') || element.textContent);
    return name.trim() === '';
  })
  .map((element) => element.outerHTML.slice(0, 200))
"""
"""Elements that a screen reader could not name."""

SMALL = """
() => [...document.querySelectorAll('button, select, a, summary')]
  .filter((element) => element.checkVisibility() && !element.closest('.markdown') && !element.matches('.skip'))
  .map((element) => [element.outerHTML.slice(0, 120), element.getBoundingClientRect()])
  .filter(([, box]) => box.height < 24 || box.width < 24)
  .map(([html]) => html)
"""
"""Targets smaller than a finger or a shaky hand can hit."""


@pytest.mark.requirement("page.keyboard")
def test_everything_can_be_done_with_the_keyboard_alone(page: Page, address: str, desk: Desk) -> None:
    page.goto(address)
    expect(message_field(page)).to_be_focused()
    expect(page.get_by_role("combobox", name="Model")).to_be_visible()
    page.keyboard.type("call desk::gate")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("and wait")
    expect(message_field(page)).to_have_value("call desk::gate\nand wait")
    page.keyboard.press("Enter")
    desk.gate.called()
    expect(message_field(page)).to_be_focused()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("note").filter(has_text="stopped by user")).to_be_visible()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("/")
    expect(message_field(page)).to_be_focused()
    page.keyboard.press("Alt+n")
    expect(page.get_by_role("heading", name="What should the agent do?")).to_be_visible()
    page.keyboard.press("Alt+ArrowDown")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("call desk::gate"))


@pytest.mark.requirement("page.keyboard")
def test_tab_goes_through_the_page_in_the_order_it_is_read(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.get_by_role("combobox", name="Model")).to_be_visible()
    expect(page.get_by_role("navigation", name="List of conversations")).to_be_visible()
    skip = page.get_by_role("link", name="Skip to the message field")
    skip.focus()
    expect(skip).to_be_in_viewport()
    for role, name in (
        ("link", "iii, new conversation"),
        ("button", "New conversation"),
        ("searchbox", "Search conversations by title"),
    ):
        page.keyboard.press("Tab")
        expect(page.get_by_role(role, name=name)).to_be_focused()
    skip.focus()
    page.keyboard.press("Enter")
    expect(message_field(page)).to_be_focused()
    for role, name in (("combobox", "Model"), ("button", "Functions")):
        page.keyboard.press("Tab")
        expect(page.get_by_role(role, name=name)).to_be_focused()


@pytest.mark.requirement("page.screen-reader")
def test_every_control_has_a_name_and_is_large_enough(page: Page, address: str, desk: Desk) -> None:
    session = desk.converse("names", [{"thinking": "Hm."}, text("`code`"), call("desk::gate")], [text("```\nx\n```")])
    page.goto(f"{address}#/c/{session}")
    desk.gate.called()
    message_field(page).fill("wait for me")
    message_field(page).press("Enter")
    expect(page.get_by_role("region", name="Waiting for the next step")).to_be_visible()
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(SMALL) == []
    desk.gate.release()
    expect(page.get_by_role("group", name="Code")).to_be_visible()
    page.get_by_role("button", name="Functions").click()
    expect(page.get_by_role("list", name="Functions")).to_be_visible()
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(SMALL) == []


@pytest.mark.requirement("page.screen-reader")
def test_a_screen_reader_is_told_of_answers_and_not_of_every_word(page: Page, address: str, desk: Desk) -> None:
    session = desk.converse("tell", [call("desk::gate")], [text("Here it is.")])
    page.goto(f"{address}#/c/{session}")
    desk.gate.called()
    log = page.get_by_role("log", name="Conversation")
    expect(log).to_have_attribute("aria-live", "off")
    desk.gate.release()
    expect(page.get_by_role("status").filter(has_text="Answer: Here it is.")).to_have_attribute("aria-live", "polite")
    expect(page.get_by_role("main").get_by_role("heading", level=1)).to_have_count(1)


@pytest.mark.requirement("page.narrow")
def test_on_a_phone_the_list_is_a_drawer_and_nothing_is_wider_than_the_screen(
    page: Page, address: str, desk: Desk
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    long = f"[{'x' * 300}](https://example.com) `{'y' * 300}`\n\n| {' | '.join('abcdefghij' * 2)} |\n|{'---|' * 20}\n"
    steps = [text(long), call("desk::add", {"a": 1, "b": 2})], [text("Done.")], [call("desk::gate")], [text("Gone.")]
    session = desk.converse("a phone", *steps)
    page.goto(address)
    page.get_by_role("button", name="Conversations").click()
    page.get_by_role("link", name=re.compile("^a phone")).click()
    expect(told(page, "Done.")).to_be_visible()
    expect(page.get_by_role("searchbox")).to_be_hidden()
    assert page.url.endswith(session)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("document.querySelector('.scroll').scrollWidth") == 390
    message_field(page).fill("and now wait")
    message_field(page).press("Enter")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    box = page.get_by_role("button", name="Send").bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390
    page.get_by_role("button", name="Conversations").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).to_be_hidden()


@pytest.mark.requirement("page.theme")
def test_the_theme_follows_the_system_until_one_is_chosen_and_stays_chosen(page: Page, address: str) -> None:
    def shows(colour: str) -> None:
        expect(page.locator("body")).to_have_css("background-color", colour)

    dark, light = "rgb(25, 26, 26)", "rgb(251, 250, 248)"
    page.emulate_media(color_scheme="dark")
    page.goto(address)
    shows(dark)
    page.emulate_media(color_scheme="light")
    shows(light)
    page.get_by_role("button", name="Theme: as the system").click()
    page.get_by_role("button", name="Theme: light").click()
    shows(dark)
    page.reload()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    shows(dark)


@pytest.mark.requirement("page.self-contained")
def test_the_page_asks_its_own_host_alone(page: Page, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url.replace("ws://", "http://")))
    page.goto(address)
    expect(page.get_by_role("combobox", name="Model")).to_be_visible()
    assert len(asked) > 5
    assert [url for url in asked if not url.startswith(address)] == []


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[str]:
    """A site of somebody else."""
    (tmp_path / "index.html").write_text("<title>stranger</title>")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(tmp_path))

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_address[1]}/"
        server.shutdown()


KNOCK = """
(url) => new Promise((resolve) => {
  const socket = new WebSocket(url);
  socket.onopen = () => resolve('open');
  socket.onerror = () => resolve('refused');
})
"""


@pytest.mark.requirement("page.foreign.origin")
def test_the_page_of_a_stranger_cannot_open_the_bus(
    context: BrowserContext, address: str, stack: StackProcess, stranger: str
) -> None:
    page = context.new_page()
    page.goto(stranger)
    assert page.evaluate(KNOCK, address.replace("http", "ws") + "ws") == "refused"
    assert page.evaluate(KNOCK, stack.url) == "refused"
    read = "(url) => fetch(url).then(() => 'read', () => 'refused')"
    assert page.evaluate(read, address) == "refused"


@pytest.mark.requirement("page.foreign.host")
def test_a_name_that_was_rebound_to_this_machine_gets_nothing(context: BrowserContext, address: str) -> None:
    page = context.new_page()
    answer = page.goto(address.replace("127.0.0.1", REBOUND))
    assert answer is not None
    assert answer.status == 403
    assert page.evaluate(KNOCK, address.replace("127.0.0.1", REBOUND).replace("http", "ws") + "ws") == "refused"


@pytest.mark.requirement("page.token")
def test_a_stack_with_a_token_asks_for_it_and_a_wrong_one_is_refused(
    page: Page, browser: Browser, tmp_path: Path
) -> None:
    stack = StackProcess(tmp_path / "data", "--page-port", "0", III_TOKEN="open sesame")
    try:
        page.goto(stack.ready["page"])
        expect(page.get_by_role("heading", name="This stack wants its token")).to_be_visible()
        page.get_by_role("textbox", name="Token").fill("open barley")
        page.get_by_role("button", name="Connect", exact=True).click()
        expect(page.get_by_role("alert")).to_have_text("That token was not accepted.")
        page.get_by_role("textbox", name="Token").fill("open sesame")
        page.get_by_role("button", name="Connect", exact=True).click()
        expect(page.get_by_role("combobox", name="Model")).to_be_visible()
        expect(page.get_by_role("heading", name="This stack wants its token")).to_have_count(0)
        page.reload()
        expect(page.get_by_role("combobox", name="Model")).to_be_visible()
    finally:
        stack.end()
