"""The newest page in blocks, with elided runs (siblings 3.7)."""

import pytest

from iii_testing.session_desk import Desk, assistant, call_block, result, text, user

pytestmark = pytest.mark.requirement("sessions.tail")


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def session(desk: Desk) -> str:
    return desk.session()


def add(desk, session, entry_id, message=None, custom=None, **fields):
    payload = {"message": message} if custom is None else {"custom": custom}
    desk.call("append", session_id=session, entry_id=entry_id, **payload, **fields)


def turn(desk, session, name, calls=2):
    """A user message, a run of calls with results, and an answer."""
    add(desk, session, f"{name}-u", user(name))
    for n in range(calls):
        thinking = {"type": "thinking", "text": "hm"}
        add(desk, session, f"{name}-a{n}", assistant(thinking, text("look"), call_block(f"{name}{n}")))
        add(desk, session, f"{name}-r{n}", result(f"{name}{n}"))
    add(desk, session, f"{name}-b", assistant(text("answer")))


def tail(desk, session, **request):
    return desk.call("messages-tail", session_id=session, **request)


def ids(answer):
    return [item["entry_id"] for item in answer["messages"]]


def test_a_page_holds_whole_blocks_oldest_first(desk, session):
    turn(desk, session, "x")
    turn(desk, session, "y")
    page = tail(desk, session, limit=2)
    assert ids(page) == ["y-a0", "y-r0", "y-a1", "y-r1", "y-b"]
    assert (page["has_more"], page["oldest_entry_id"]) == (True, "y-a0")
    page = tail(desk, session, limit=2, before_entry_id="y-a0")
    assert ids(page) == ["x-b", "y-u"]
    page = tail(desk, session, limit=2, before_entry_id="x-b")
    assert ids(page) == ["x-u", "x-a0", "x-r0", "x-a1", "x-r1"]
    assert page["has_more"] is False


def test_an_empty_session_has_an_empty_tail(desk, session):
    assert tail(desk, session) == {"messages": [], "has_more": False}


def test_a_page_reaches_back_to_an_entry_whatever_the_limit(desk, session):
    turn(desk, session, "x")
    turn(desk, session, "y")
    assert ids(tail(desk, session, limit=1, until_entry_id="x-r0"))[0] == "x-a0"
    assert ids(tail(desk, session, limit=1, until_entry_id="y-b")) == ["y-b"]
    assert ids(tail(desk, session, limit=3, until_entry_id="y-b"))[0] == "y-u"


@pytest.mark.requirement("sessions.tail.elision")
def test_inside_a_run_only_the_last_calls_and_results_stay_whole(desk, session):
    turn(desk, session, "x", calls=3)
    items = {item["entry_id"]: item for item in tail(desk, session)["messages"]}
    assert [name for name, item in items.items() if item.get("elided")] == ["x-a0", "x-r0", "x-a1", "x-r1"]
    short = items["x-a0"]["message"]["content"]
    assert short == [text("look"), {**call_block("x0"), "arguments": {}}]
    assert items["x-r0"]["message"] == {**result("x0"), "content": [], "details": None}
    assert items["x-a2"]["message"]["content"][0]["type"] == "thinking"
    assert items["x-r2"]["message"] == result("x2")
    whole = desk.call("messages", session_id=session)["messages"]
    assert whole[1]["message"]["content"][0]["type"] == "thinking"


@pytest.mark.requirement("sessions.tail.elision")
def test_the_generic_call_keeps_which_function_it_names(desk, session):
    arguments = {"function": "a::b", "description": "why", "payload": {"big": 1}}
    for n in (1, 2):
        add(desk, session, f"a{n}", assistant(call_block(f"c{n}", "agent_trigger", arguments=arguments)))
        add(desk, session, f"r{n}", result(f"c{n}"))
    first = tail(desk, session)["messages"][0]["message"]["content"][0]
    assert first["arguments"] == {"function": "a::b", "description": "why"}


@pytest.mark.requirement("sessions.tail.runs")
@pytest.mark.parametrize(
    ("entry_id", "entry"),
    [
        ("e_fire_1", {"message": user("fired")}),
        ("e_trigstale_1", {"message": user("stale")}),
        ("n", {"message": user("told"), "origin": {"notification": True}}),
        ("t", {"message": user("told"), "origin": {"trigger_fired": True}}),
        ("c", {"custom": {"custom_type": "trigger_fired", "data": {}}}),
    ],
)
def test_wake_entries_belong_to_a_run_and_stay_whole(desk, session, entry_id, entry):
    add(desk, session, "a1", assistant(call_block("c1")))
    add(desk, session, "r1", result("c1"))
    add(desk, session, entry_id, **entry)
    add(desk, session, "a2", assistant(call_block("c2")))
    page = tail(desk, session, limit=1)
    assert ids(page) == ["a1", "r1", entry_id, "a2"]
    assert [item.get("elided", False) for item in page["messages"]] == [True, True, False, False]


@pytest.mark.requirement("sessions.tail.runs")
def test_any_other_custom_entry_ends_a_run(desk, session):
    add(desk, session, "a1", assistant(call_block("c1")))
    add(desk, session, "r1", result("c1"))
    add(desk, session, "k", custom={"custom_type": "compaction", "data": {}})
    add(desk, session, "a2", assistant(call_block("c2")))
    assert ids(tail(desk, session, limit=1)) == ["a2"]
    assert ids(tail(desk, session, limit=2)) == ["k", "a2"]
    page = tail(desk, session, limit=2, include_custom=False)
    assert ids(page) == ["a1", "r1", "a2"]
    assert page["has_more"] is False
    assert not any(item.get("elided") for item in page["messages"])


@pytest.mark.requirement("sessions.tail.runs")
def test_results_alone_are_a_run_without_anything_whole(desk, session):
    add(desk, session, "r1", result("c1"))
    add(desk, session, "r2", result("c2"))
    assert all(item["elided"] for item in tail(desk, session)["messages"])


def test_entries_off_the_path_are_refused(desk, session):
    turn(desk, session, "x")
    desk.say(session, "branch", parent_id="x-u", entry_id="other")
    for name in ("before_entry_id", "until_entry_id"):
        for entry_id in ("x-b", "none"):
            assert desk.code("messages-tail", session_id=session, **{name: entry_id}) == "session/invalid_cursor"
    assert desk.code("messages-tail", session_id="none") == "session/not_found"
