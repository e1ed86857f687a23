"""Nothing is lost: a reload in the middle, a connection that breaks, a stack that is killed (siblings 15.3, 16)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from iii_testing.page_desk import Desk, Restartable, call, text
from iii_testing.page_reading import message_field, said, say, told

pytestmark = pytest.mark.slow


@pytest.fixture
def own_stack(tmp_path: Path) -> Iterator[Restartable]:
    stack = Restartable(tmp_path / "data")
    yield stack
    stack.stack.end()


@pytest.mark.requirement("page.lasting.reload")
def test_a_reload_in_the_middle_of_a_turn_loses_nothing(page: Page, address: str, desk: Desk) -> None:
    session = desk.converse("go on", [text("Before."), call("desk::gate")], [text("After.")])
    page.goto(f"{address}#/c/{session}")
    desk.gate.called()
    message_field(page).fill("not sent yet")
    page.reload()
    expect(told(page, "Before.")).to_be_visible()
    expect(page.locator("details.call")).to_contain_text("running")
    expect(message_field(page)).to_have_value("not sent yet")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    desk.gate.release()
    expect(told(page, "After.")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)


@pytest.mark.requirement("page.lasting.restart")
def test_a_stack_that_was_killed_and_is_back_is_found_again(page: Page, own_stack: Restartable) -> None:
    page.goto(own_stack.url)
    say(page, "What can you do here?")
    expect(told(page, "What to try next")).to_be_visible()
    message_field(page).fill("written while it was away")
    own_stack.kill()
    banner = page.get_by_role("status").filter(has_text="Connection lost.")
    expect(banner.first).to_be_visible()
    expect(told(page, "What to try next")).to_be_visible()
    message_field(page).press("Enter")
    expect(page.get_by_text("It is sent as soon as the stack answers.")).to_be_visible()
    expect(message_field(page)).to_have_value("written while it was away")
    own_stack.start()
    expect(page.get_by_text("Trying again by itself")).to_have_count(0)
    expect(said(page)).to_have_text(["What can you do here?", "written while it was away"])
    expect(told(page, "What to try next")).to_have_count(2)


@pytest.mark.requirement("page.lasting.restart")
def test_a_turn_that_was_killed_in_the_middle_goes_on_before_the_eyes_of_the_page(
    page: Page, own_stack: Restartable
) -> None:
    desk = Desk(own_stack.stack)
    session = desk.converse("survive", [text("One."), call("desk::gate")], [text("Two.")])
    page.goto(f"{own_stack.url}#/c/{session}")
    desk.gate.called()
    expect(page.locator("details.call")).to_contain_text("running")
    desk.gate.release()
    desk.close()
    own_stack.kill()
    expect(page.get_by_text("Trying again by itself")).to_be_visible()
    own_stack.start()
    expect(told(page, "Two.")).to_be_visible()
    expect(told(page, "One.")).to_be_visible()


CUT_AT_SEND = """
window.sentKeys = [];
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (frame) {
  const fields = JSON.parse(frame);
  if (fields.type !== 'invokefunction' || fields.function_id !== 'harness::send') return send.call(this, frame);
  sentKeys.push(fields.data.idempotency_key);
  if (sentKeys.length > 1) return send.call(this, frame);
  CUT
};
"""
"""A connection that breaks at the first message that is sent, in one of the two ways below."""

LOST_ON_THE_WAY = "this.close();"
ANSWER_LOST = """
  this.onmessage = (event) => event.data.includes('"accepted"') && this.close();
  send.call(this, frame);
"""


@pytest.mark.requirement("page.lasting.resend")
@pytest.mark.parametrize(("cut", "sends"), [(LOST_ON_THE_WAY, 2), (ANSWER_LOST, 1)], ids=["lost", "answer"])
def test_a_message_whose_outcome_is_unknown_is_looked_up_and_sent_again_only_when_it_did_not_arrive(
    page: Page, address: str, desk: Desk, cut: str, sends: int
) -> None:
    page.add_init_script(CUT_AT_SEND.replace("CUT", cut))
    page.goto(address)
    say(page, "once and only once")
    expect(told(page, "What to try next")).to_be_visible()
    expect(said(page)).to_have_text(["once and only once"])
    keys = page.evaluate("sentKeys")
    assert len(keys) == sends
    assert len(set(keys)) == 1
    session = page.url.rsplit("/", 1)[1]
    entries = desk.call("session::messages", {"session_id": session, "roles": ["user"]})["messages"]
    assert len(entries) == 1


@pytest.mark.requirement("page.lasting.resend")
def test_a_message_that_was_refused_is_kept_with_the_reason_and_can_be_sent_again(
    page: Page, address: str, desk: Desk
) -> None:
    session = desk.call("session::create", {"title": "closed", "metadata": {"read_only": True}})["session_id"]
    page.goto(f"{address}#/c/{session}")
    say(page, "let me in")
    refused = page.get_by_role("article", name="You, not delivered yet")
    expect(refused).to_contain_text("read-only")
    page.reload()
    expect(refused).to_contain_text("let me in")
    desk.call("session::set-meta", {"session_id": session, "metadata": {}})
    refused.get_by_role("button", name="Send again").click()
    expect(told(page, "What to try next")).to_be_visible()
    expect(said(page)).to_have_text(["let me in"])
