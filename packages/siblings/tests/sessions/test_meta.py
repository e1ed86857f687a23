"""Sessions: creating, reading, changing, deleting (siblings 3.1, 3.2)."""

import pytest

from iii_testing.session_desk import Desk, assistant, user


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.requirement("sessions.create")
def test_create_starts_idle_with_what_was_given(desk):
    answer = desk.call("create", title="T", description="D", metadata={"a": 1}, kind="e2e")
    now = desk.world.clock.now_ms()
    assert answer["meta"] == {
        "session_id": answer["session_id"],
        "title": "T",
        "description": "D",
        "status": "idle",
        "kind": "e2e",
        "metadata": {"a": 1},
        "created_at": now,
        "updated_at": now,
        "message_count": 0,
    }
    assert answer["session_id"].startswith("s_")
    kinds = [kind for kind, _ in desk.heard.take()]
    assert kinds == ["session::created"]
    assert desk.call("create")["meta"]["kind"] == "user"
    assert desk.code("create", kind="robot") == "session/invalid_request"


@pytest.mark.requirement("sessions.ensure")
def test_ensure_creates_once_and_then_only_reads(desk):
    first = desk.call("ensure", session_id="s", title="T")
    assert first["created"] is True
    desk.heard.take()
    before = desk.dump()
    again = desk.call("ensure", session_id="s", title="U", description="D", metadata={"a": 1}, kind="e2e")
    assert again == {"session_id": "s", "meta": first["meta"], "created": False}
    assert desk.dump() == before
    assert desk.heard.take() == []
    assert desk.code("ensure", session_id="") == "session/invalid_request"
    assert desk.code("ensure", session_id="x" * 600) == "session/invalid_request"


@pytest.mark.requirement("sessions.set-meta")
def test_set_meta_replaces_the_whole_map_and_leaves_the_rest(desk):
    session = desk.session(title="T", metadata={"a": 1})
    desk.heard.take()
    desk.world.clock.skip(1)
    meta = desk.call("set-meta", session_id=session, metadata={"b": 2})["meta"]
    assert (meta["title"], meta["metadata"]) == ("T", {"b": 2})
    now = desk.world.clock.now_ms()
    assert meta["updated_at"] == now
    told = {"session_id": session, "title": "T", "description": "", "metadata": {"b": 2}, "timestamp": now}
    assert desk.heard.take() == [("session::meta-updated", told)]
    assert desk.heard.subjects[-1].metadata == '{"b":2}'


@pytest.mark.requirement("sessions.set-meta")
def test_set_meta_with_nothing_only_reads(desk):
    session = desk.session(title="T")
    desk.heard.take()
    before = desk.dump()
    assert desk.call("set-meta", session_id=session, title=None)["meta"]["title"] == "T"
    assert desk.dump() == before
    assert desk.heard.take() == []


@pytest.mark.requirement("sessions.set-draft")
def test_a_draft_is_silent_and_a_blank_one_clears(desk):
    session = desk.session()
    attachment = desk.call("put-attachment", session_id=session, name="n", mime="m", data="QUJD")["attachment"]
    at = desk.call("get", session_id=session)["meta"]["updated_at"]
    desk.heard.take()
    desk.world.clock.skip(1)
    draft = {"draft": "half a", "attachment_ids": [attachment["attachment_id"]]}
    assert desk.call("set-draft", session_id=session, **draft) == {"draft": "half a"}
    meta = desk.call("get", session_id=session)["meta"]
    assert (meta["draft"], meta["draft_attachments"], meta["updated_at"]) == ("half a", [attachment], at)
    assert desk.call("set-draft", session_id=session, attachment_ids=[]) == {"draft": "half a"}
    assert "draft_attachments" not in desk.call("get", session_id=session)["meta"]
    assert desk.call("set-draft", session_id=session, draft=" \n") == {"draft": None}
    assert "draft" not in desk.call("get", session_id=session)["meta"]
    assert desk.heard.take() == []
    unknown = {"session_id": session, "attachment_ids": ["nope"]}
    assert desk.code("set-draft", **unknown) == "session/invalid_request"


@pytest.mark.requirement("sessions.set-status")
def test_a_status_tells_its_change_and_its_reason(desk):
    session = desk.session()
    desk.heard.take()
    set_status = [("working", None), ("working", None), ("working", "r"), ("error", "e"), ("idle", "kept not")]
    answers = [desk.call("set-status", session_id=session, status=s, reason=r) for s, r in set_status]
    previous = ["idle", "working", "working", "working", "error"]
    assert answers == [{"status": s, "previous_status": p} for (s, _), p in zip(set_status, previous, strict=True)]
    told = [(e["status"], e["previous_status"], e.get("status_reason")) for _, e in desk.heard.take()]
    assert told == [
        ("working", "idle", None),
        ("working", "working", "r"),
        ("error", "working", "e"),
        ("idle", "error", None),
    ]
    assert "status_reason" not in desk.call("get", session_id=session)["meta"]


@pytest.mark.requirement("sessions.delete")
def test_delete_leaves_nothing_and_forks_live_on(desk):
    session = desk.session(metadata={"a": 1})
    desk.call("put-attachment", session_id=session, name="n", mime="m", data="QUJD")
    last = desk.say(session, "a")
    fork = desk.call("fork", session_id=session, entry_id=last)["session_id"]
    desk.heard.take()
    assert desk.call("delete", session_id=session) == {"deleted": True}
    assert [kind for kind, _ in desk.heard.take()] == ["session::deleted"]
    assert desk.heard.subjects[-1].metadata == '{"a":1}'
    assert desk.call("get", session_id=session) is None
    assert len(desk.path(fork)) == 1
    assert desk.call("delete", session_id=session) == {"deleted": False}
    assert desk.heard.take() == []
    desk.call("delete", session_id=fork)
    assert desk.dump() == [[], [], [], [], []]


@pytest.mark.requirement("sessions.reads.unknown")
def test_plain_reads_of_unknown_things_are_null(desk):
    session = desk.session()
    assert desk.call("get", session_id="none") is None
    assert desk.call("get-message", session_id=session, entry_id="none") is None
    assert desk.call("get-message", session_id="none", entry_id="none") is None
    assert desk.call("get-attachment", session_id="none", attachment_id="none") is None
    assert desk.call("list-attachments", session_id="none") == {"attachments": []}


@pytest.mark.requirement("sessions.fork")
def test_a_fork_copies_the_path_under_fresh_ids(desk):
    session = desk.session(
        title="T",
        description="D",
        kind="automation",
        metadata={"parent_session_id": "p", "parent_turn_id": "t", "function_call_id": "f", "depth": 1, "mine": 2},
    )
    desk.call("set-draft", session_id=session, draft="half")
    desk.say(session, "a", entry_id="a")
    desk.call("append", session_id=session, message=assistant(), entry_id="b", origin={"turn_id": "t"})
    desk.call("update-message", session_id=session, entry_id="b", content=[{"type": "text", "text": "x"}])
    compaction = {"custom_type": "compaction", "data": {"summary": "s", "tail_start_entry_id": "b"}}
    desk.call("append", session_id=session, custom=compaction, entry_id="c")
    desk.say(session, "later", entry_id="d")
    desk.world.clock.skip(3)
    answer = desk.call("fork", session_id=session, entry_id="c")
    fork, meta = answer["session_id"], answer["meta"]
    assert meta == desk.call("get", session_id=fork)["meta"]
    assert (meta["title"], meta["kind"], meta["metadata"]) == ("T", "automation", {"mine": 2})
    assert (meta["forked_from"], meta["message_count"], meta.get("draft")) == (session, 2, None)
    assert meta["created_at"] == desk.world.clock.now_ms()
    originals = [desk.call("get-message", session_id=session, entry_id=e)["entry"] for e in "abc"]
    copies = [desk.call("get-message", session_id=fork, entry_id=e)["entry"] for e in desk.path(fork)]
    assert [c["timestamp"] for c in copies] == [o["timestamp"] for o in originals]
    assert [c.get("message") for c in copies] == [o.get("message") for o in originals]
    assert [c["revision"] for c in copies] == [0, 0, 0]
    assert copies[1]["origin"] == {"turn_id": "t"}
    assert not {c["id"] for c in copies} & {"a", "b", "c"}
    assert copies[2]["data"] == {"summary": "s", "tail_start_entry_id": copies[1]["id"]}
    kind, told = desk.heard.take()[-1]
    assert (kind, told["forked_from"]) == ("session::created", session)


@pytest.mark.requirement("sessions.fork")
def test_forks_of_unknown_places_are_refused(desk):
    session = desk.session()
    assert desk.code("fork", session_id="none", entry_id="a") == "session/not_found"
    assert desk.code("fork", session_id=session, entry_id="a") == "session/entry_not_found"
    last = desk.say(session, "a")
    assert desk.call("fork", session_id=session, entry_id=last, title="New")["meta"]["title"] == "New"


@pytest.mark.requirement("sessions.fork")
def test_a_fork_and_its_original_do_not_share_what_comes_later(desk):
    session = desk.session()
    last = desk.say(session, "a")
    fork = desk.call("fork", session_id=session, entry_id=last)["session_id"]
    desk.call("update-message", session_id=session, entry_id=last, content=user("changed")["content"])
    desk.say(session, "b")
    assert [i["message"]["content"][0]["text"] for i in desk.call("messages", session_id=fork)["messages"]] == ["a"]
