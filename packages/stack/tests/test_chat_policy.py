"""What a chat may call, and what --allow and --deny make of it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_contracts.policy import CHAT_POLICY
from iii_harness.globs import compile_globs
from iii_stack.chat.policy import chat_policy
from iii_stack.errors import StackError

pytestmark = pytest.mark.requirement("stack.chat.policy")

OPEN = [
    "demo::add", "shell::run", "web::fetch", "engine::functions::list", "engine::functions::info",
    "engine::workers::list", "engine::workers::info", "engine::triggers::list", "engine::traces::list",
    "engine::logs::list", "engine::registered-triggers::info",
]  # fmt: skip
CLOSED = [
    "approval::resolve", "compose::up", "configuration::get", "console::x", "context::assemble", "eval::start",
    "harness::send", "iii::durable::publish", "provider::openai::stream", "publish", "queue::define", "router::chat",
    "session::delete", "state::get", "worker::x", "engine::register_trigger", "engine::unregister_trigger",
    "engine::channels::create", "engine::queue::enqueue", "engine::workers::register", "engine::log::info",
    "engine::traces::clear", "engine::traces::tree", "engine::logs::clear", "engine::baggage::set",
]  # fmt: skip


def may_call(policy: dict, function_id: str) -> bool:
    allow: re.Pattern[str] = compile_globs(policy["allow"])
    deny: re.Pattern[str] = compile_globs(policy["deny"])
    return bool(allow.fullmatch(function_id)) and not deny.fullmatch(function_id)


def test_a_chat_may_call_workers_and_look_around() -> None:
    policy = chat_policy()
    assert policy == {"allow": ["*"], "deny": CHAT_POLICY.deny, "expose": "agent_trigger"}
    assert [each for each in OPEN if not may_call(policy, each)] == []
    assert [each for each in CLOSED if may_call(policy, each)] == []


def test_allowing_an_id_opens_that_id_alone() -> None:
    policy = chat_policy(allow=["session::get"])
    assert may_call(policy, "session::get")
    for other in ("session::delete", "session::ge", "session::get-message", "session::", "session::g", "session::gets"):
        assert not may_call(policy, other), other


def test_allowing_a_beginning_opens_what_begins_so() -> None:
    policy = chat_policy(allow=["state::*", "session::get*", "engine::*"])
    assert may_call(policy, "state::set")
    assert may_call(policy, "session::get-message")
    assert may_call(policy, "engine::register_trigger")
    assert not may_call(policy, "session::delete")


def test_denying_wins() -> None:
    policy = chat_policy(allow=["state::get"], deny=["demo::*", "state::get"])
    assert not may_call(policy, "demo::add")
    assert not may_call(policy, "state::get")


@given(
    st.lists(st.text("gest:-", min_size=1, max_size=5).map("session::".__add__), max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.text("gest:-", max_size=6).map("session::".__add__),
)
def test_exactly_what_is_allowed_is_taken_out(ids: list[str], starts: list[bool], asked: str) -> None:
    allow = [each + "*" if start else each for each, start in zip(ids, starts, strict=False)]
    wanted = any(asked.startswith(each[:-1]) if each.endswith("*") else asked == each for each in allow)
    assert may_call(chat_policy(allow=allow), asked) == wanted


@pytest.mark.parametrize("pattern", ["{a,b}", "a[b]", "", "a**", "*a", "A::b", "a b"])
def test_a_pattern_that_is_no_id_is_refused(pattern: str) -> None:
    with pytest.raises(StackError, match="--allow"):
        chat_policy(allow=[pattern])
