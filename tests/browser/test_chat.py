"""Conversations in a real browser: from the first message to the end of a turn (siblings 15.3, 16)."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from iii_testing.page_desk import Desk, call, text
from iii_testing.page_reading import call_row, message_field, resting, said, say, told

pytestmark = pytest.mark.slow

PAUSE = {"delay_ms": 200}
"""Longer than the loop takes partial answers together."""


@pytest.mark.requirement("page.chat.first-message")
def test_a_first_message_starts_a_conversation_that_answers(page: Page, address: str, desk: Desk) -> None:
    page.goto(address)
    expect(page.get_by_role("heading", name="What should the agent do?")).to_be_visible()
    say(page, 'call desk::add {"a": 20, "b": 22}')
    expect(said(page)).to_contain_text("call desk::add")
    expect(told(page, "This came back from")).to_be_visible()
    expect(page).to_have_url(re.compile(r"#/c/s_"))
    row = page.get_by_role("link", name=re.compile("call desk::add"))
    expect(row).to_have_attribute("aria-current", "page")
    expect(page).to_have_title(re.compile("call desk::add"))


@pytest.mark.requirement("page.chat.calls")
def test_a_call_is_folded_and_shows_what_it_was_asked_and_what_it_answered(
    page: Page, address: str, desk: Desk
) -> None:
    session = desk.converse("sum", [text("I add."), call("desk::add", {"a": 1, "b": 2})], [text("It is three.")])
    page.goto(f"{address}#/c/{session}")
    expect(told(page, "It is three.")).to_be_visible()
    row = call_row(page, "desk::add")
    expect(row).to_contain_text("done")
    arguments = page.get_by_role("group", name="Arguments of desk::add")
    expect(arguments).to_be_hidden()
    row.locator("summary").click()
    expect(arguments).to_contain_text('"a": 1')
    expect(page.get_by_role("group", name="Result of desk::add")).to_contain_text('"sum": 3')


@pytest.mark.requirement("page.chat.calls")
def test_an_older_call_of_a_long_run_is_read_when_it_is_unfolded(page: Page, address: str, desk: Desk) -> None:
    calls = [[call("desk::add", {"a": number, "b": 10})] for number in (1, 2, 3)]
    session = desk.converse("three sums", *calls, [text("Added up.")])
    page.goto(f"{address}#/c/{session}")
    expect(told(page, "Added up.")).to_be_visible()
    page.reload()
    expect(told(page, "Added up.")).to_be_visible()
    call_row(page, "desk::add").first.locator("summary").click()
    expect(page.get_by_role("group", name="Arguments of desk::add")).to_contain_text('"a": 1')
    expect(page.get_by_role("group", name="Result of desk::add")).to_contain_text('"sum": 11')


@pytest.mark.requirement("page.chat.calls")
def test_a_call_that_runs_one_that_failed_and_one_that_was_denied_look_different(
    page: Page, address: str, desk: Desk
) -> None:
    session = desk.converse(
        "three calls",
        [call("desk::fail"), call("state::list", {"scope": "x"}), call("desk::gate")],
        [text("All tried.")],
    )
    page.goto(f"{address}#/c/{session}")
    desk.gate.called()
    expect(call_row(page, "desk::gate")).to_contain_text("running")
    expect(call_row(page, "desk::fail")).to_contain_text("failed")
    expect(call_row(page, "state::list")).to_contain_text("denied")
    call_row(page, "desk::fail").locator("summary").click()
    expect(page.get_by_role("group", name="Result of desk::fail")).to_contain_text("the plug was pulled")
    desk.gate.release()
    expect(call_row(page, "desk::gate")).to_contain_text("done")
    expect(told(page, "All tried.")).to_be_visible()


@pytest.mark.requirement("page.chat.streaming")
def test_an_answer_is_shown_while_it_is_written_and_escape_stops_it(page: Page, address: str, desk: Desk) -> None:
    more = [part for _ in range(8) for part in (PAUSE, text("and so on "))]
    begun = [{"thinking": "Where to begin?"}, PAUSE, text("First words ")]
    session = desk.converse("endless", [*begun, *more, {"hang": True}])
    page.goto(f"{address}#/c/{session}")
    expect(told(page, "First words")).to_be_visible()
    thinking = told(page, "Where to begin?")
    expect(thinking).to_be_hidden()
    told(page, "Thought").click()
    expect(thinking).to_be_visible()
    message_field(page).press("Escape")
    expect(page.get_by_role("note").filter(has_text="stopped by user")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(told(page, "First words")).to_be_visible()


@pytest.mark.requirement("page.chat.stop")
def test_stop_ends_a_turn_that_waits_for_a_call(page: Page, address: str, desk: Desk) -> None:
    session = desk.converse("wait", [call("desk::gate")], [text("never")])
    page.goto(f"{address}#/c/{session}")
    desk.gate.called()
    page.get_by_role("button", name="Stop").click()
    expect(call_row(page, "desk::gate")).to_contain_text("interrupted")
    expect(page.get_by_role("note").filter(has_text="stopped by user")).to_be_visible()


@pytest.mark.requirement("page.chat.steering")
def test_what_is_said_while_the_agent_works_waits_can_be_changed_and_is_delivered(
    page: Page, address: str, desk: Desk
) -> None:
    session = desk.converse("steer me", [call("desk::gate")], [text("I have read all of it.")])
    page.goto(f"{address}#/c/{session}")
    desk.gate.called()
    waiting = page.get_by_role("region", name="Waiting for the next step")
    say(page, "a first thought")
    expect(waiting).to_contain_text("a first thought")
    say(page, "a second thought")
    expect(waiting.get_by_role("listitem")).to_have_count(2)
    waiting.get_by_role("button", name="Edit “a first thought”").click()
    field = waiting.get_by_role("textbox")
    field.fill("a better thought")
    field.press("Enter")
    expect(waiting).to_contain_text("a better thought")
    waiting.get_by_role("button", name="Remove “a second thought”").click()
    expect(waiting.get_by_role("listitem")).to_have_count(1)
    desk.gate.release()
    expect(told(page, "I have read all of it.")).to_be_visible()
    expect(waiting).to_have_count(0)
    expect(said(page)).to_have_text(["steer me", "a better thought"])


@pytest.mark.requirement("page.chat.functions")
def test_what_the_agent_may_call_is_shown_and_can_be_changed(page: Page, address: str, desk: Desk) -> None:
    page.goto(address)
    say(page, 'call state::list {"scope": "nothing"}')
    expect(call_row(page, "state::list")).to_contain_text("denied")
    resting(page)
    page.get_by_role("button", name=re.compile("^Functions")).click()
    dialog = page.get_by_role("dialog", name="What the agent may call")
    dialog.get_by_role("searchbox").fill("state::list")
    switch = dialog.get_by_role("switch", name=re.compile("^state::list(?!_)"))
    expect(switch).not_to_be_checked()
    switch.check()
    dialog.get_by_role("searchbox").fill("desk::")
    expect(dialog.get_by_role("switch", name=re.compile("desk::add"))).to_be_checked()
    dialog.get_by_role("button", name="Done").click()
    say(page, 'call state::list {"scope": "nothing"}')
    expect(call_row(page, "state::list").nth(1)).to_contain_text("done")
    page.reload()
    expect(page.get_by_role("button", name=re.compile("Functions.*1 changed"))).to_be_visible()


@pytest.mark.requirement("page.chat.entries")
def test_a_failure_says_what_happened_and_what_to_do(page: Page, address: str, desk: Desk) -> None:
    session = desk.converse("fail", [{"error": {"kind": "permanent", "message": "no such luck"}}])
    page.goto(f"{address}#/c/{session}")
    note = page.get_by_role("note").filter(has_text="rejected")
    expect(note.get_by_role("listitem").first).to_be_visible()
    note.get_by_text("Details").click()
    expect(note).to_contain_text("router/provider_rejected")
    expect(note).to_contain_text("no such luck")
    expect(page.get_by_role("link", name=re.compile("^fail"))).to_contain_text("fail")
    expect(page.get_by_role("img", name="failed").first).to_be_visible()


@pytest.mark.requirement("page.chat.entries")
def test_a_broken_answer_and_its_recovery_stay_visible(page: Page, address: str, desk: Desk) -> None:
    session = desk.converse("break", [text("Half of"), {"cut": True}], [text("All of it.")])
    page.goto(f"{address}#/c/{session}")
    expect(told(page, "All of it.")).to_be_visible()
    expect(told(page, "Half of")).to_be_visible()
    expect(page.get_by_role("note").filter(has_text="attempt 1 of 1")).to_be_visible()
    expect(told(page, "The agent was asked to go on")).to_be_visible()
    expect(said(page)).to_have_text(["break"])


@pytest.mark.requirement("page.markdown")
def test_an_answer_is_formatted_and_nothing_in_it_becomes_html(page: Page, address: str, desk: Desk) -> None:
    written = (
        "## Title\n\n**bold** and `code`\n\n1. one\n2. two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        "```py\nprint('<b>')\n```\n\n<img src=x onerror=alert(1)> <script>alert(1)</script>\n\n"
        "[bad](javascript:alert(1)) [good](https://example.com) ![pixel](https://example.com/p.png)"
    )
    session = desk.converse("format", [text(written)])
    page.goto(f"{address}#/c/{session}")
    answer = page.get_by_role("article", name="Agent")
    expect(answer.get_by_role("heading", name="Title")).to_be_visible()
    expect(answer.locator("strong")).to_have_text("bold")
    expect(answer.get_by_role("listitem")).to_have_text(["one", "two"])
    expect(answer.get_by_role("cell")).to_have_text(["1", "2"])
    expect(answer.get_by_role("group", name="Code")).to_have_text("print('<b>')")
    expect(answer).to_contain_text("<img src=x")
    assert answer.locator("img, script, iframe, object").count() == 0
    links = answer.get_by_role("link")
    expect(links).to_have_text(["good", "pixel"])
    assert {link.get_attribute("rel") for link in links.all()} == {"noopener noreferrer"}
    expect(page).to_have_title(re.compile("format"))


@pytest.mark.requirement("page.chat.paging")
def test_earlier_messages_are_read_when_they_are_asked_for(page: Page, address: str, desk: Desk) -> None:
    session = desk.call("session::create", {"title": "a long one"})["session_id"]
    messages = [
        {"role": "user", "content": [{"type": "text", "text": f"line {number}"}], "timestamp": number}
        for number in range(70)
    ]
    desk.call("session::append-many", {"session_id": session, "messages": messages})
    page.goto(f"{address}#/c/{session}")
    expect(said(page)).to_have_count(50)
    expect(said(page).last).to_be_in_viewport()
    page.get_by_role("button", name="Show earlier messages").click()
    expect(said(page)).to_have_count(70)
    expect(said(page).first).to_have_text("line 0")
    expect(page.get_by_role("button", name="Show earlier messages")).to_have_count(0)


@pytest.mark.requirement("page.list.search")
def test_conversations_are_found_by_title_and_renamed(page: Page, address: str, desk: Desk) -> None:
    for title in ("Needle in the hay", "Hay alone"):
        desk.call("session::create", {"title": title})
    page.goto(address)
    page.get_by_role("searchbox", name="Search conversations by title").fill("needle")
    rows = page.get_by_role("navigation").get_by_role("link")
    expect(rows).to_have_count(1)
    rows.click()
    page.get_by_role("button", name="Rename").click()
    dialog = page.get_by_role("dialog", name="Rename the conversation")
    dialog.get_by_role("textbox", name="Title").fill("Needle, found")
    dialog.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("heading", name="Needle, found", level=1)).to_be_visible()
    expect(rows).to_contain_text("Needle, found")


@pytest.mark.requirement("page.list.events")
def test_what_happens_elsewhere_appears_in_the_list(page: Page, address: str, desk: Desk) -> None:
    page.goto(address)
    expect(page.get_by_role("navigation", name="List of conversations")).to_be_visible()
    session = desk.call("session::create", {"title": "made elsewhere"})["session_id"]
    row = page.get_by_role("link", name=re.compile("made elsewhere"))
    expect(row).to_be_visible()
    desk.call("session::set-status", {"session_id": session, "status": "working"})
    expect(row.get_by_role("img", name="working")).to_be_visible()
    desk.call("session::delete", {"session_id": session})
    expect(row).to_have_count(0)


@pytest.mark.requirement("page.states")
def test_a_conversation_that_does_not_exist_is_said_to_be_missing(page: Page, address: str) -> None:
    page.goto(f"{address}#/c/s_nowhere")
    expect(page.get_by_role("heading", name="There is no such conversation")).to_be_visible()
    page.get_by_role("main").get_by_role("button", name="New conversation").click()
    expect(page.get_by_role("heading", name="What should the agent do?")).to_be_visible()


@pytest.mark.requirement("page.states")
def test_a_conversation_that_is_deleted_while_it_is_open_is_said_to_be_gone(
    page: Page, address: str, desk: Desk
) -> None:
    session = desk.call("session::create", {"title": "short-lived"})["session_id"]
    page.goto(f"{address}#/c/{session}")
    expect(page.get_by_role("heading", name="short-lived")).to_be_visible()
    expect(message_field(page)).to_be_visible()
    desk.call("session::delete", {"session_id": session})
    expect(page.get_by_role("heading", name="There is no such conversation")).to_be_visible()
