"""What a person looks for on the page."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect


def message_field(page: Page) -> Locator:
    """Where the next message is written."""
    return page.get_by_role("textbox", name="Message", exact=True)


def say(page: Page, words: str) -> None:
    """Write a message and send it."""
    message_field(page).fill(words)
    message_field(page).press("Enter")


def told(page: Page, words: str) -> Locator:
    """A text of the conversation."""
    return page.get_by_role("log", name="Conversation").get_by_text(words)


def said(page: Page) -> Locator:
    """The messages of the person at the page."""
    return page.get_by_role("article", name="You", exact=True)


def call_row(page: Page, function: str) -> Locator:
    """A call of the agent, folded or not."""
    return page.locator("details.call", has_text=function)


def resting(page: Page) -> None:
    """Return when the demonstration's turn is over: what is sent then starts the next one."""
    expect(told(page, "What to try next")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
