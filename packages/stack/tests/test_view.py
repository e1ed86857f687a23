"""What a chat shows, whatever order events come in."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest
from rich.console import Console

from iii_stack.chat.entries import custom_line
from iii_stack.chat.view import ChatView

pytestmark = pytest.mark.requirement("stack.chat.view")


def assistant(text: str, *calls: str, stop: str = "end") -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "function_call", "id": call, "function_id": "a::b", "arguments": {"n": call}} for call in calls]
    return {"role": "assistant", "content": blocks, "stop_reason": stop}


def result(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "function_result", "content": [{"type": "text", "text": text}], **fields}


class Screen:
    """A view and what it has shown."""

    def __init__(self) -> None:
        self.out = io.StringIO()
        self.err = io.StringIO()
        self.view = ChatView(self.out.write, Console(file=self.err, width=80, no_color=True))


def test_text_is_shown_as_it_grows_and_calls_when_they_are_complete() -> None:
    screen = Screen()
    screen.view.entry({"entry_id": "a", "message": assistant("")})
    screen.view.entry({"entry_id": "a", "message": assistant("Let")}, revision=1)
    screen.view.entry({"entry_id": "a", "message": assistant("Let me", "c1")}, revision=2)
    assert (screen.out.getvalue(), screen.err.getvalue()) == ("Let me", "")
    screen.view.entry({"entry_id": "a", "message": assistant("Let me look", "c1", stop="function_call")}, revision=3)
    screen.view.entry({"entry_id": "r", "message": result("fine", is_error=False)})
    assert screen.out.getvalue() == "Let me look\n"
    assert screen.err.getvalue() == '→ a::b {"n": "c1"}\n✓ fine\n'
    assert screen.view.calls == 1


@pytest.mark.parametrize("seed", range(20))
def test_repeated_and_late_events_change_nothing(seed: int) -> None:
    texts = ["", "One", "One two", "One two three"]
    events: list[dict[str, Any]] = [
        {"entry": {"entry_id": "a", "message": assistant(text)}, "revision": revision}
        for revision, text in enumerate(texts)
    ]
    shuffled = events * 2
    random.Random(seed).shuffle(shuffled)
    screen = Screen()
    for event in [*shuffled, events[-1]]:
        screen.view.entry(event["entry"], revision=event["revision"])
    for _ in range(2):
        screen.view.entry({"entry_id": "a", "message": assistant("One two three")}, final=True)
        screen.view.entry({"entry_id": "r", "message": result("once", is_error=True)})
    assert screen.out.getvalue() == "One two three\n"
    assert screen.err.getvalue() == "✗ once\n"


def test_a_text_that_was_replaced_is_shown_anew_on_its_own_line() -> None:
    screen = Screen()
    screen.view.entry({"entry_id": "a", "message": assistant("Wrong")}, revision=1)
    screen.view.entry({"entry_id": "a", "message": assistant("Right")}, revision=2)
    screen.view.end_line()
    assert screen.out.getvalue() == "Wrong\nRight\n"


def test_what_was_there_before_and_what_is_for_the_model_stays_quiet() -> None:
    screen = Screen()
    screen.view.skip("a")
    screen.view.entry({"entry_id": "a", "message": assistant("old")}, final=True)
    screen.view.entry({"entry_id": "c", "custom": {"custom_type": "runtime_context", "data": {}}})
    screen.view.entry({"entry_id": "e", "custom": {"custom_type": "error", "data": {"reason": "boom"}}})
    assert screen.out.getvalue() == ""
    assert screen.err.getvalue() == "[error] boom\n"
    assert screen.view.has_told("boom")
    assert not screen.view.has_told("old")


@pytest.mark.requirement("stack.show.folded")
def test_what_the_model_is_told_is_one_short_line_of_a_transcript() -> None:
    aid = "Your session id is s_1.\nYour working directory is /somewhere. " + "Functions: many. " * 40
    line = custom_line({"custom_type": "runtime_context", "data": {"aid": aid}})
    assert line.startswith("[runtime_context] Your session id is s_1. Your working directory")
    assert len(line) < 80


def test_entries_of_the_loop_say_what_they_mean_and_others_show_their_data() -> None:
    screen = Screen()
    broken = {"status": "recovering", "summary": "The provider failed.", "reason": "its stream ended", "attempt": 1}
    for number, (kind, data) in enumerate(
        [("recovery", broken), ("notice", {"reason": "stopped", "message": "stopped by user."}), ("error", ["odd"])]
    ):
        screen.view.entry({"entry_id": str(number), "custom": {"custom_type": kind, "data": data}})
    assert screen.err.getvalue().splitlines() == [
        "[recovery] recovering · The provider failed. · its stream ended",
        "[notice] stopped by user.",
        '[error] ["odd"]',
    ]
