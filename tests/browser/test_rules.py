"""The page's rules without a browser: its policy is that of the command line, its transcript that of the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iii_contracts.policy import CHAT_POLICY
from iii_harness.globs import compile_globs
from iii_stack.chat.policy import chat_policy
from iii_testing.page_module import PageModule

BASE = CHAT_POLICY.model_dump()
IDS = st.from_regex(r"(session|state|engine|desk|publish|harness)(::[a-z][a-z-]{0,5}){0,2}", fullmatch=True)
PATTERNS = st.builds(lambda text, star: text + star, IDS, st.sampled_from(["", "*", "::*"]))


@pytest.fixture(scope="module")
def policy() -> Iterator[PageModule]:
    module = PageModule("src/chat/model/policy.ts")
    yield module
    module.end()


@pytest.fixture(scope="module")
def transcript() -> Iterator[PageModule]:
    module = PageModule("src/chat/model/transcript.ts")
    yield module
    module.end()


@pytest.mark.requirement("page.chat.functions")
@settings(max_examples=150)
@given(allow=st.lists(PATTERNS, max_size=4), deny=st.lists(PATTERNS, max_size=3))
def test_the_page_makes_the_policy_that_the_command_line_makes(
    policy: PageModule, allow: list[str], deny: list[str]
) -> None:
    assert policy.ask("changed", BASE, {"allow": allow, "deny": deny}) == chat_policy(allow, deny)


@pytest.mark.requirement("page.chat.functions")
@settings(max_examples=200)
@given(allow=st.lists(PATTERNS, max_size=4), deny=st.lists(PATTERNS, max_size=3), id=IDS)
def test_the_page_shows_as_allowed_what_the_loop_allows(
    policy: PageModule, allow: list[str], deny: list[str], id: str
) -> None:
    made = chat_policy(allow, deny)
    allowed, denied = compile_globs(made["allow"]), compile_globs(made["deny"])
    assert policy.ask("allows", made, id) is bool(allowed.fullmatch(id) and not denied.fullmatch(id))


@pytest.mark.requirement("page.chat.functions")
@settings(max_examples=100)
@given(allow=st.lists(PATTERNS, max_size=3), deny=st.lists(PATTERNS, max_size=3), id=IDS, on=st.booleans())
def test_a_switch_does_what_it_says_to_this_function(
    policy: PageModule, allow: list[str], deny: list[str], id: str, on: bool
) -> None:
    change = policy.ask("switched", BASE, {"allow": allow, "deny": deny}, id, on)
    covered = on and any(id.startswith(pattern.rstrip("*")) and pattern.endswith("*") for pattern in deny)
    if not covered:  # a pattern that somebody wrote below the switches keeps its word
        assert policy.ask("allows", policy.ask("changed", BASE, change), id) is on
    if not on and id not in allow:
        assert change["allow"] == allow


def message(text: str, role: str = "assistant") -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}], "timestamp": 1}


def tail(*ids: str, more: bool = False) -> dict[str, Any]:
    return {"messages": [{"entry_id": id, "message": message(id)} for id in ids], "has_more": more}


def ids(transcript: dict[str, Any]) -> list[str]:
    return [entry["id"] for entry in transcript["entries"]]


EMPTY: dict[str, Any] = {"entries": [], "hasOlder": False}


@pytest.mark.requirement("page.lasting.reload")
def test_an_entry_is_placed_behind_its_parent_and_a_gap_asks_for_a_new_reading(transcript: PageModule) -> None:
    known = transcript.ask("withTail", EMPTY, tail("a", "b"))
    event = {"session_id": "s", "entry_id": "c", "parent_id": "b", "message": message("c")}
    placed = transcript.ask("added", known, event)
    assert ids(placed["transcript"]) == ["a", "b", "c"]
    assert transcript.ask("added", placed["transcript"], event) == {"kind": "known"}
    assert transcript.ask("added", known, {**event, "parent_id": "x"}) == {"kind": "gap"}
    first = transcript.ask("added", EMPTY, {**event, "parent_id": None})
    assert ids(first["transcript"]) == ["c"]


@pytest.mark.requirement("page.lasting.reload")
def test_of_an_entry_the_highest_revision_counts_and_an_unknown_one_is_asked_for(transcript: PageModule) -> None:
    known = transcript.ask("withTail", EMPTY, tail("a"))
    event = {"session_id": "s", "entry_id": "a", "message": message("newer"), "revision": 3}
    assert transcript.ask("updated", known, event) == {"kind": "ask"}
    asked = transcript.ask("withEntry", known, {"id": "a", "revision": 2, "message": message("two")})
    newer = transcript.ask("updated", asked, event)["transcript"]
    assert newer["entries"][0]["message"] == message("newer")
    assert transcript.ask("updated", newer, {**event, "revision": 2}) == {"kind": "known"}
    stale = transcript.ask("withEntry", newer, {"id": "a", "revision": 2, "message": message("two")})
    assert stale == newer
    assert transcript.ask("updated", newer, {**event, "entry_id": "z"}) == {"kind": "gap"}


@pytest.mark.requirement("page.chat.paging")
def test_a_new_reading_keeps_earlier_pages_and_what_is_known_better(transcript: PageModule) -> None:
    known = transcript.ask("withTail", EMPTY, tail("c", "d", more=True))
    known = transcript.ask("withOlder", known, tail("a", "b"))
    assert ids(known) == ["a", "b", "c", "d"]
    assert known["hasOlder"] is False
    again = transcript.ask("withTail", known, tail("c", "d", "e", more=True))
    assert ids(again) == ["a", "b", "c", "d", "e"]
    assert again["hasOlder"] is False
    outline = {"messages": [{"entry_id": "c", "message": message(""), "elided": True}], "has_more": True}
    assert transcript.ask("withTail", known, outline)["entries"][2]["message"] == message("c")
    elsewhere = transcript.ask("withTail", known, tail("x", "y"))
    assert ids(elsewhere) == ["x", "y"]
