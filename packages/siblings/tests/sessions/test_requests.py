"""Every function with input that does not fit: the specified answer, and nothing changes (siblings 3.9)."""

import pytest

from iii_contracts.session import FUNCTIONS
from iii_kit.errors import CodedError
from iii_testing.session_desk import Desk, text, user

GOOD = {
    "create": {},
    "ensure": {"session_id": "s"},
    "get": {"session_id": "s"},
    "list": {},
    "set-meta": {"session_id": "s", "title": "t"},
    "set-draft": {"session_id": "s", "draft": "d"},
    "set-status": {"session_id": "s", "status": "done"},
    "delete": {"session_id": "s"},
    "append": {"session_id": "s", "message": user("a")},
    "append-many": {"session_id": "s", "messages": [user("a")]},
    "update-message": {"session_id": "s", "entry_id": "e", "content": [text("x")]},
    "messages": {"session_id": "s"},
    "messages-tail": {"session_id": "s"},
    "messages-range": {"session_id": "s", "entry_ids": ["e"]},
    "get-message": {"session_id": "s", "entry_id": "e"},
    "fork": {"session_id": "s", "entry_id": "e"},
    "set-active-leaf": {"session_id": "s", "entry_id": "e"},
    "put-attachment": {"session_id": "s", "name": "n", "mime": "m", "data": "QUJD"},
    "get-attachment": {"session_id": "s", "attachment_id": "a"},
    "list-attachments": {"session_id": "s"},
    "delete-attachment": {"session_id": "s", "attachment_id": "a"},
}
UNKNOWN_IS_READ = {"get", "get-message", "get-attachment", "list-attachments", "delete"}
NAMES = [spec.id.removeprefix("session::") for spec in FUNCTIONS]


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.call("ensure", session_id="s")
    desk.say("s", "a", entry_id="e")
    desk.heard.take()
    return desk


@pytest.mark.requirement("sessions.requests")
def test_every_function_is_covered_here():
    assert set(GOOD) == set(NAMES)
    assert len(NAMES) == 21


@pytest.mark.requirement("sessions.requests")
@pytest.mark.parametrize("name", NAMES)
def test_a_good_request_with_unknown_fields_and_a_caller_is_served(desk, name):
    desk.call(name, **GOOD[name], unknown_field=1, _caller_worker_id="w")


@pytest.mark.requirement("sessions.requests")
@pytest.mark.parametrize(("name", "field"), [(name, field) for name in NAMES for field in GOOD[name]])
@pytest.mark.parametrize("value", [7, {"no": 1}])
def test_a_wrong_type_is_refused_by_field(desk, name, field, value):
    before = desk.dump()
    with pytest.raises(CodedError) as refused:
        desk.call(name, **{**GOOD[name], field: value})
    assert refused.value.code == "session/invalid_request"
    assert refused.value.message.startswith("session/invalid_request: ")
    assert field in refused.value.message
    assert desk.dump() == before
    assert desk.heard.take() == []


REQUIRED = [
    (name, field)
    for name in NAMES
    for field in GOOD[name]
    if (name, field)
    not in {("set-meta", "title"), ("set-draft", "draft"), ("append", "message"), ("messages-range", "entry_ids")}
]


@pytest.mark.requirement("sessions.requests")
@pytest.mark.parametrize(("name", "field"), REQUIRED)
def test_a_missing_field_is_named(desk, name, field):
    before = desk.dump()
    request = {key: value for key, value in GOOD[name].items() if key != field}
    with pytest.raises(CodedError, match=f"missing field `{field}`"):
        desk.call(name, **request)
    assert desk.dump() == before


@pytest.mark.requirement("sessions.requests.unknown-session")
@pytest.mark.parametrize("name", [name for name in NAMES if "session_id" in GOOD[name] and name != "ensure"])
def test_an_unknown_session_is_not_found_or_reads_as_nothing(desk, name):
    before = desk.dump()
    request = {**GOOD[name], "session_id": "none"}
    if name in UNKNOWN_IS_READ:
        assert desk.call(name, **request) in (None, {"attachments": []}, {"deleted": False})
    else:
        assert desk.code(name, **request) == "session/not_found"
    assert desk.dump() == before
    assert desk.heard.take() == []


@pytest.mark.requirement("sessions.contract")
@pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.id)
def test_every_function_declares_itself(spec):
    assert spec.description
    assert spec.metadata["embedded"] is True
    for field in _fields(spec.request_schema):
        assert field.get("description") or "$ref" in str(field), spec.id


def _fields(schema):
    return schema.get("properties", {}).values()
