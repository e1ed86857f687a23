"""Reading in pages (siblings 3.3, 3.6)."""

import pytest

from iii_testing.session_desk import Desk, assistant, call_block, result, text, user


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def session(desk: Desk) -> str:
    session = desk.session()
    desk.say(session, "hi", entry_id="u")
    desk.call("append", session_id=session, message=assistant(call_block("c")), entry_id="a")
    desk.call("append", session_id=session, message=result("c"), entry_id="r")
    desk.call("append", session_id=session, custom={"custom_type": "x", "data": 1}, entry_id="x")
    desk.call("append", session_id=session, message=assistant(text("bye")), entry_id="b")
    return session


def pages(desk, name, key, limit, **request):
    found, seen = [], set()
    while True:
        page = desk.call(name, limit=limit, **request)
        assert len(page[key]) <= limit
        found.extend(page[key])
        cursor = page.get("next_cursor")
        if cursor is None:
            return found
        assert cursor not in seen
        seen.add(cursor)
        request["cursor"] = cursor


@pytest.mark.requirement("sessions.list")
@pytest.mark.parametrize("order", ["updated_desc", "created_desc", "created_asc"])
@pytest.mark.parametrize("limit", [1, 2, 3, 50])
def test_pages_of_sessions_hold_every_one_once_in_order(desk, order, limit):
    made = []
    for index in range(7):
        desk.world.clock.skip(index % 2)
        made.append(desk.session(title=str(index)))
    desk.call("set-status", session_id=made[2], status="done")
    listed = pages(desk, "list", "sessions", limit, order=order)
    column = "updated_at" if order == "updated_desc" else "created_at"
    want = sorted(listed, key=lambda meta: (meta[column], meta["session_id"]), reverse=order.endswith("desc"))
    assert listed == want
    assert {meta["session_id"] for meta in listed} == set(made)


@pytest.mark.requirement("sessions.list")
def test_filters_are_combined_and_compare_json(desk):
    for metadata in ({"a": 1}, {"a": 1, "b": "x"}, {"a": True}, {"a": 1.5, "b": "x"}, {"b": None}, None):
        desk.session(metadata=metadata)

    def found(**request):
        return [meta.get("metadata") for meta in desk.call("list", order="created_asc", **request)["sessions"]]

    assert sorted(found(metadata={"a": 1}), key=len) == [{"a": 1}, {"a": 1, "b": "x"}]
    assert found(metadata={"a": 1, "b": "x"}) == [{"a": 1, "b": "x"}]
    assert found(metadata={"a": True}) == [{"a": True}]
    assert found(metadata={"b": None}) == [{"b": None}]
    assert found(metadata={"c": 1}) == []
    assert len(found(metadata={})) == 6
    assert found(status="done") == []
    assert len(found(status="idle")) == 6


@pytest.mark.requirement("sessions.list")
def test_children_are_found_through_the_index(desk):
    parent = desk.session()
    children = [desk.session(metadata={"parent_session_id": parent, "depth": d}) for d in (1, 2)]
    desk.session(metadata={"parent_session_id": "other"})
    listed = desk.call("list", metadata={"parent_session_id": parent})["sessions"]
    assert {meta["session_id"] for meta in listed} == set(children)
    plan = desk.db.execute(
        "EXPLAIN QUERY PLAN SELECT * FROM sessions WHERE json_extract(metadata, '$.parent_session_id') = ?", ("x",)
    ).fetchall()
    assert "sessions_parent" in str(plan)


@pytest.mark.requirement("sessions.list.cursor")
def test_a_cursor_of_another_order_or_no_cursor_at_all_is_refused(desk):
    for _ in range(3):
        desk.session()
    cursor = desk.call("list", limit=1)["next_cursor"]
    assert desk.code("list", cursor=cursor, order="created_asc") == "session/invalid_cursor"
    for bad in ("", "x", "bm8=", "é"):
        assert desk.code("list", cursor=bad) == "session/invalid_cursor"


@pytest.mark.requirement("sessions.paging.limit")
def test_limits_have_a_default_a_maximum_and_no_zero(desk, session):
    desk.limits.page, desk.limits.max_page = 2, 3
    assert len(desk.call("messages", session_id=session)["messages"]) == 2
    assert len(desk.call("messages", session_id=session, limit=100)["messages"]) == 3
    for name in ("messages", "messages-tail"):
        with pytest.raises(Exception, match="session/invalid_request: `limit`"):
            desk.call(name, session_id=session, limit=0)


@pytest.mark.requirement("sessions.paging.bytes")
def test_a_page_ends_before_it_is_too_large_to_send(desk, monkeypatch):
    session = desk.session()
    for name in "abcdef":
        desk.say(session, name * 300, entry_id=name)
    desk.say(session, "é" * 700, entry_id="g")
    monkeypatch.setattr("iii_siblings.sessions.paging.MAX_BODY", 1000)
    page = desk.call("messages", session_id=session, limit=100)
    assert 1 < len(page["messages"]) < 4
    items = pages(desk, "messages", "messages", 100, session_id=session)
    assert [item["entry_id"] for item in items] == list("abcdefg")
    ranged = pages(desk, "messages-range", "messages", 100, session_id=session, entry_ids=list("abcdefg"))
    assert [item["entry_id"] for item in ranged] == list("abcdefg")


@pytest.mark.requirement("sessions.messages.path")
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_pages_of_messages_hold_the_path_oldest_first(desk, session, limit):
    items = pages(desk, "messages", "messages", limit, session_id=session, include_custom=True)
    assert [item["entry_id"] for item in items] == ["u", "a", "r", "x", "b"]
    items = pages(desk, "messages", "messages", limit, session_id=session)
    assert [item["entry_id"] for item in items] == ["u", "a", "r", "b"]


@pytest.mark.requirement("sessions.messages.roles")
def test_roles_drop_everything_else_and_bookkeeping_too(desk, session):
    def ids(**request):
        return [item["entry_id"] for item in desk.call("messages", session_id=session, **request)["messages"]]

    assert ids(roles=["assistant"]) == ["a", "b"]
    assert ids(roles=["user", "function_result"], include_custom=True) == ["u", "r"]
    assert ids(roles=[]) == []
    assert desk.code("messages", session_id=session, roles=["robot"]) == "session/invalid_request"


@pytest.mark.requirement("sessions.messages.after")
def test_after_an_entry_only_what_is_new(desk, session):
    assert desk.path(session, after_entry_id="r") == ["x", "b"]
    assert desk.path(session, after_entry_id="b") == []
    assert desk.path(session, after_entry_id="u", from_entry_id="r") == ["a", "r"]
    page = desk.call("messages", session_id=session, after_entry_id="u", limit=2)
    assert [item["entry_id"] for item in page["messages"]] == ["a", "r"]
    rest = desk.call("messages", session_id=session, after_entry_id="u", limit=2, cursor=page["next_cursor"])
    assert [item["entry_id"] for item in rest["messages"]] == ["b"]


@pytest.mark.requirement("sessions.messages.after")
def test_entries_off_the_path_are_no_cursor(desk, session):
    desk.say(session, "branch", parent_id="u", entry_id="other")
    for name in ("after_entry_id", "cursor"):
        assert desk.code("messages", session_id=session, **{name: "a"}) == "session/invalid_cursor"
        assert desk.code("messages", session_id=session, **{name: "none"}) == "session/invalid_cursor"
    assert desk.path(session, after_entry_id="u") == ["other"]
    assert desk.path(session, from_entry_id="b") == ["u", "a", "r", "x", "b"]
    assert desk.code("messages", session_id=session, from_entry_id="none") == "session/entry_not_found"


@pytest.mark.requirement("sessions.messages.image-data")
def test_image_bytes_are_blanked_only_where_they_can_be_had_again(desk):
    session = desk.session()
    kept = {"type": "image", "mime": "image/png", "data": "AAAA"}
    blanked = {**kept, "attachment_id": "att"}
    nested = {"type": "function_result", "function_call_id": "c", "content": [blanked]}
    message = {"role": "user", "content": [kept, blanked, nested], "timestamp": 1}
    entry_id = desk.call("append", session_id=session, message=message)["entry_id"]
    empty = {**blanked, "data": ""}
    want = {**message, "content": [kept, empty, {**nested, "content": [empty]}]}
    where = {"session_id": session, "include_image_data": False}
    assert desk.call("messages", **where)["messages"][0]["message"] == want
    assert desk.call("messages-tail", **where)["messages"][0]["message"] == want
    assert desk.call("messages-range", entry_ids=[entry_id], **where)["messages"][0]["message"] == want
    assert desk.call("get-message", entry_id=entry_id, **where)["entry"]["message"] == want
    assert desk.call("messages", session_id=session)["messages"][0]["message"] == message


@pytest.mark.requirement("sessions.range")
def test_a_span_or_a_list_in_path_order(desk, session):
    def ids(**request):
        return [item["entry_id"] for item in desk.call("messages-range", session_id=session, **request)["messages"]]

    assert ids(from_entry_id="a", to_entry_id="x") == ["a", "r", "x"]
    assert ids(from_entry_id="a", to_entry_id="a") == ["a"]
    assert ids(entry_ids=["b", "a", "b", "x"]) == ["a", "x", "b"]
    assert ids(entry_ids=[]) == []
    request = {"session_id": session, "from_entry_id": "u", "to_entry_id": "b"}
    walked = pages(desk, "messages-range", "messages", 2, **request)
    assert [item["entry_id"] for item in walked] == ["u", "a", "r", "x", "b"]
    walked = pages(desk, "messages-range", "messages", 1, session_id=session, entry_ids=["b", "u"])
    assert [item["entry_id"] for item in walked] == ["u", "b"]


@pytest.mark.requirement("sessions.range")
def test_a_range_needs_exactly_one_selector_and_entries_of_the_path(desk, session):
    desk.say(session, "branch", parent_id="u", entry_id="other")
    for selector, code in (
        ({}, "session/invalid_request"),
        ({"from_entry_id": "u"}, "session/invalid_request"),
        ({"from_entry_id": "u", "to_entry_id": "a", "entry_ids": ["a"]}, "session/invalid_request"),
        ({"to_entry_id": "u", "entry_ids": ["a"]}, "session/invalid_request"),
        ({"from_entry_id": "a", "to_entry_id": "u"}, "session/invalid_request"),
        ({"from_entry_id": "none", "to_entry_id": "u"}, "session/entry_not_found"),
        ({"entry_ids": ["none"]}, "session/entry_not_found"),
        ({"entry_ids": ["a"]}, "session/entry_not_found"),
        ({"entry_ids": ["other"], "cursor": "a"}, "session/invalid_cursor"),
    ):
        assert desk.code("messages-range", session_id=session, **selector) == code, selector
    assert desk.code("messages-range", session_id="none", entry_ids=[]) == "session/not_found"


@pytest.mark.requirement("sessions.messages.incremental")
def test_an_incremental_read_does_not_touch_what_came_before(desk):
    session = desk.session()
    for index in range(300):
        desk.call("append", session_id=session, message=user(f"{index}"), entry_id=f"e{index}")
    statements: list[str] = []
    desk.db.set_trace_callback(statements.append)
    assert desk.path(session, after_entry_id="e298") == ["e299"]
    desk.call("append", session_id=session, message=user("new"), entry_id="e300")
    desk.db.set_trace_callback(None)
    assert len(statements) <= 14
