"""Appending: idempotency, order of checks, what is stored (siblings 3.2, 3.4)."""

import pytest

from iii_kit.encoding import encode
from iii_siblings.sessions.schema import MAX_LEVELS
from iii_testing.session_desk import Desk, assistant, call_block, result, text, user

pytestmark = pytest.mark.requirement("sessions.append")


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def session(desk: Desk) -> str:
    return desk.session()


def test_the_parent_is_the_active_leaf_and_the_leaf_moves(desk, session):
    first = desk.call("append", session_id=session, message=user("a"))
    second = desk.call("append", session_id=session, message=user("b"))
    assert first["parent_id"] is None
    assert second["parent_id"] == first["entry_id"]
    assert desk.path(session) == [first["entry_id"], second["entry_id"]]


def test_an_explicit_parent_starts_a_branch_and_moves_the_leaf(desk, session):
    for name in "abc":
        desk.say(session, name, entry_id=name)
    assert desk.call("append", session_id=session, message=user("x"), parent_id="a", entry_id="x")["parent_id"] == "a"
    assert desk.path(session) == ["a", "x"]
    assert desk.say(session, "y", entry_id="y")
    assert desk.path(session) == ["a", "x", "y"]
    assert desk.call("get", session_id=session)["meta"]["message_count"] == 5


@pytest.mark.requirement("sessions.append.idempotent")
def test_a_known_entry_id_changes_nothing_and_tells_nothing(desk, session):
    first = desk.call("append", session_id=session, message=user("a"), entry_id="e")
    desk.say(session, "b")
    desk.heard.take()
    before = desk.dump()
    desk.world.clock.skip(5)
    again = desk.call("append", session_id=session, message=user("other"), entry_id="e", parent_id="nowhere")
    assert again == first
    assert desk.dump() == before
    assert desk.heard.take() == []


@pytest.mark.requirement("sessions.append.idempotent")
def test_entry_ids_are_known_per_session(desk, session):
    other = desk.session()
    desk.say(session, "a", entry_id="e")
    desk.say(other, "b", entry_id="e")
    assert desk.path(session) == desk.path(other) == ["e"]


@pytest.mark.requirement("sessions.append.order-of-checks")
def test_checks_come_in_the_specified_order(desk, session):
    both = {"message": user("a"), "custom": {"custom_type": "t", "data": 1}}
    assert desk.code("append", session_id="none", entry_id="e", parent_id="p", **both) == "session/not_found"
    desk.say(session, "a", entry_id="e")
    assert desk.code("append", session_id=session, entry_id="e", parent_id="p", **both) == "session/invalid_request"
    assert desk.code("append", session_id=session, entry_id="e") == "session/invalid_request"
    assert desk.call("append", session_id=session, entry_id="e", parent_id="p", message=user("b"))["entry_id"] == "e"
    assert desk.code("append", session_id=session, parent_id="p", message=user("b")) == "session/parent_not_found"


@pytest.mark.requirement("sessions.messages.as-given")
@pytest.mark.parametrize(
    "message",
    [
        {**user("a"), "unknown": {"kept": [1, None]}},
        {"role": "user", "content": [{"type": "hologram", "depth": 3, "nested": {"a": None}}], "timestamp": 1},
        assistant({"type": "redacted_thinking", "data": "x"}, {"type": "thinking", "text": "t", "signature": None}),
        assistant({"type": "function_call", "id": "c", "function_id": "a::b"}),
        {"role": "function_result", "function_call_id": "c", "function_id": "f", "content": [], "timestamp": 1},
        {"role": "function_result", "function_call_id": "c", "function_id": "f", "content": [text("")], "timestamp": 1},
        {"role": "custom", "custom_type": "x", "content": [], "timestamp": 1, "display": "d"},
        {"timestamp": 1, "content": [text("\u0000 \U0001f600 end")], "role": "user"},
    ],
)
def test_a_message_comes_back_as_it_was_given(desk, session, message):
    entry_id = desk.call("append", session_id=session, message=message)["entry_id"]
    stored = desk.call("messages", session_id=session)["messages"][0]["message"]
    assert stored == message
    assert list(stored) == list(message)
    assert desk.call("get-message", session_id=session, entry_id=entry_id)["entry"]["message"] == message


def test_a_custom_entry_counts_no_message_and_keeps_its_data(desk, session):
    custom = {"custom_type": "compaction", "data": None}
    desk.call("append", session_id=session, custom=custom, entry_id="c", origin={"turn_id": "t"})
    assert desk.call("get", session_id=session)["meta"]["message_count"] == 0
    item = desk.call("messages", session_id=session, include_custom=True)["messages"][0]
    assert item == {"entry_id": "c", "custom": custom, "origin": {"turn_id": "t"}}


@pytest.mark.requirement("sessions.append.validated")
@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"role": "robot", "content": [], "timestamp": 1}, "role"),
        ({"role": "user", "timestamp": 1}, "content"),
        ({"role": "user", "content": "text", "timestamp": 1}, "expected a list"),
        ({"role": "user", "content": [{"text": "no type"}], "timestamp": 1}, "type"),
        ({"role": "user", "content": [text("")], "timestamp": 1}, "message.content.0.text"),
        ({"role": "user", "content": [text("a")], "timestamp": "now"}, "timestamp"),
        (assistant(text("a"), stop_reason="whim"), "stop_reason"),
        (assistant(call_block("c", function_id=3)), "function_id"),
    ],
)
def test_a_message_that_does_not_fit_is_refused_by_field_and_nothing_is_stored(desk, session, message, words):
    before = desk.dump()
    with pytest.raises(Exception, match="session/invalid_request") as refused:
        desk.call("append", session_id=session, message=message)
    assert words in str(refused.value)
    assert desk.dump() == before


@pytest.mark.requirement("sessions.append.validated")
def test_a_message_over_the_size_limit_is_refused_with_the_limit(desk, session, monkeypatch):
    monkeypatch.setattr("iii_siblings.sessions.append.MAX_BODY", 1000)
    with pytest.raises(Exception, match="over the limit of 1000"):
        desk.say(session, "é" * 600)
    assert desk.path(session) == []


def nested(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.requirement("sessions.depth")
def test_what_no_answer_could_carry_is_refused_and_what_is_stored_is_read(desk, session):
    before = desk.dump()
    deep, fits = nested(MAX_LEVELS), nested(MAX_LEVELS - 1)
    for name, request in (
        ("append", {"message": {**result("c"), "details": deep}}),
        ("append", {"message": user("a"), "origin": {"a": deep}}),
        ("append", {"custom": {"custom_type": "x", "data": deep}}),
        ("set-meta", {"metadata": {"a": deep}}),
        ("ensure", {"session_id": "s_new", "metadata": {"a": deep}}),
    ):
        with pytest.raises(Exception, match=f"session/invalid_request.*deeper than {MAX_LEVELS} levels"):
            desk.call(name, **{"session_id": session, **request})
    assert desk.dump() == before
    desk.call("set-meta", session_id=session, metadata={"a": fits})
    desk.call("append", session_id=session, message={**result("c"), "details": fits}, origin={"a": fits})
    for answer in (desk.call("messages", session_id=session), desk.call("list")):
        encode({"result": answer})


@pytest.mark.requirement("sessions.append-many")
def test_append_many_chains_under_one_origin(desk, session):
    desk.say(session, "a", entry_id="a")
    desk.heard.take()
    answer = desk.call(
        "append-many", session_id=session, messages=[assistant(call_block("c")), result("c")], origin={"turn_id": "t"}
    )
    assert desk.path(session) == ["a", *answer["entry_ids"]]
    assert answer["last_entry_id"] == answer["entry_ids"][-1]
    told = [(kind, event["parent_id"], event["origin"]) for kind, event in desk.heard.take()]
    added = "session::message-added"
    assert told == [(added, "a", {"turn_id": "t"}), (added, answer["entry_ids"][0], {"turn_id": "t"})]


@pytest.mark.requirement("sessions.append-many")
def test_append_many_is_all_or_nothing(desk, session):
    before = desk.dump()
    assert desk.code("append-many", session_id=session, messages=[]) == "session/empty_batch"
    assert desk.code("append-many", session_id="none", messages=[]) == "session/not_found"
    bad = {"session_id": session, "messages": [user("a")], "parent_id": "p"}
    assert desk.code("append-many", **bad) == "session/parent_not_found"
    half = {"session_id": session, "messages": [user("a"), user("")]}
    assert desk.code("append-many", **half) == "session/invalid_request"
    assert desk.dump() == before
    assert desk.heard.take() == [("session::created", desk_created(desk, session))]


def desk_created(desk: Desk, session: str) -> dict:
    meta = desk.call("get", session_id=session)["meta"]
    return {name: meta[name] for name in ("session_id", "title", "description", "status", "created_at")}


def test_a_branch_that_is_full_goes_on_in_another(desk, session, monkeypatch):
    monkeypatch.setattr("iii_siblings.sessions.path.BRANCH_BITS", 1)
    monkeypatch.setattr("iii_siblings.sessions.path._PLACE", 1)
    ids = [desk.say(session, name, entry_id=name) for name in "abcdefg"]
    assert desk.path(session) == ids
    assert desk.path(session, after_entry_id="c") == ids[3:]
    assert desk.call("get-message", session_id=session, entry_id="e")["entry"]["parent_id"] == "d"


@pytest.mark.requirement("sessions.set-active-leaf")
def test_set_active_leaf_moves_the_path_and_tells_nothing(desk, session):
    for name in "abc":
        desk.say(session, name, entry_id=name)
    desk.heard.take()
    assert desk.call("set-active-leaf", session_id=session, entry_id="a") == {"active_leaf": "a"}
    assert desk.path(session) == ["a"]
    assert desk.heard.take() == []
    assert desk.code("set-active-leaf", session_id=session, entry_id="z") == "session/entry_not_found"
    assert desk.code("set-active-leaf", session_id="none", entry_id="a") == "session/not_found"
