"""Replacing the content of a message (siblings 3.5)."""

import pytest

from iii_testing.session_desk import Desk, assistant, call_block, result, text, user

pytestmark = pytest.mark.requirement("sessions.update")


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def session(desk: Desk) -> str:
    session = desk.session()
    desk.call("append", session_id=session, message=assistant(), entry_id="a", origin={"turn_id": "t"})
    desk.call("append", session_id=session, message=result("c"), entry_id="r")
    desk.call("append", session_id=session, custom={"custom_type": "x", "data": 1}, entry_id="x")
    desk.say(session, "u", entry_id="u")
    desk.heard.take()
    return session


def stored(desk, session, entry_id="a"):
    return desk.call("get-message", session_id=session, entry_id=entry_id)["entry"]


def test_an_update_replaces_the_content_and_tells_the_whole_message(desk, session):
    before = stored(desk, session)
    desk.world.clock.skip(5)
    now = desk.world.clock.now_ms()
    content = [text("hi"), call_block("c1"), {"type": "hologram"}]
    answer = desk.call("update-message", session_id=session, entry_id="a", content=content)
    assert answer == {"updated": True, "revision": 1}
    after = stored(desk, session)
    assert after == {**before, "revision": 1, "message": {**assistant(), "content": content}}
    assert desk.call("get", session_id=session)["meta"]["updated_at"] == now
    event = {"session_id": session, "entry_id": "a", "message": after["message"], "revision": 1, "timestamp": now}
    assert desk.heard.take() == [("session::message-updated", {**event, "origin": {"turn_id": "t"}})]


@pytest.mark.requirement("sessions.update.revision")
def test_another_revision_writes_nothing_and_tells_nothing(desk, session):
    before = desk.dump()
    update = {"session_id": session, "entry_id": "a", "content": [text("x")]}
    assert desk.call("update-message", **update, expected_revision=1) == {"updated": False, "revision": 0}
    assert desk.dump() == before
    assert desk.heard.take() == []
    assert desk.call("update-message", **update, expected_revision=0) == {"updated": True, "revision": 1}


@pytest.mark.requirement("sessions.update.final-state")
def test_the_final_state_of_an_assistant_message_is_kept(desk, session):
    final = {
        "provider": "q",
        "stop_reason": "error",
        "native_stop_reason": "boom",
        "error_kind": "transient",
        "error_message": "again",
        "warnings": ["w"],
        "usage": {"input": 3, "later": True},
    }
    desk.call("update-message", session_id=session, entry_id="a", content=[text("x")], **final)
    assert stored(desk, session)["message"] == {**assistant(text("x")), **final}
    desk.call("update-message", session_id=session, entry_id="a", content=[])
    assert stored(desk, session)["message"] == {**assistant(), **final}


@pytest.mark.requirement("sessions.update.final-state")
def test_usage_and_final_state_of_other_roles_are_ignored(desk, session):
    content = [text("y")]
    extra = {"usage": {"input": 1}, "provider": "q", "stop_reason": "end"}
    desk.call("update-message", session_id=session, entry_id="u", content=content, **extra)
    assert stored(desk, session, "u")["message"] == {**user("y")}


def test_details_are_for_results_and_custom_messages(desk, session):
    desk.call("update-message", session_id=session, entry_id="r", content=[], details={"status": "ok"})
    assert stored(desk, session, "r")["message"] == {**result("c"), "content": [], "details": {"status": "ok"}}
    desk.call("update-message", session_id=session, entry_id="r", content=[text("z")])
    assert stored(desk, session, "r")["message"]["details"] == {"status": "ok"}
    for entry_id in ("a", "u"):
        refused = {"session_id": session, "entry_id": entry_id, "content": [], "details": {}}
        assert desk.code("update-message", **refused) == "session/details_not_supported"


def test_a_new_origin_replaces_the_old_one(desk, session):
    desk.call("update-message", session_id=session, entry_id="a", content=[], origin={"turn_id": "u"})
    assert stored(desk, session)["origin"] == {"turn_id": "u"}
    assert desk.heard.take()[0][1]["origin"] == {"turn_id": "u"}


def test_what_cannot_be_updated_is_refused_and_nothing_changes(desk, session):
    before = desk.dump()
    update = {"content": [text("x")]}
    for code, where in (
        ("session/not_found", {"session_id": "none", "entry_id": "a"}),
        ("session/entry_not_found", {"session_id": session, "entry_id": "none"}),
        ("session/invalid_entry_kind", {"session_id": session, "entry_id": "x"}),
    ):
        assert desk.code("update-message", **where, **update) == code
    empty = {"session_id": session, "entry_id": "u", "content": [text("")]}
    assert desk.code("update-message", **empty) == "session/invalid_request"
    assert desk.dump() == before
    assert desk.heard.take() == []
