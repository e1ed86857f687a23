"""Files of a session (siblings 3.2)."""

import base64
import hashlib

import pytest

from iii_testing.session_desk import Desk, user

pytestmark = pytest.mark.requirement("sessions.attachments")

DATA = base64.b64encode(b"hello").decode()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def session(desk: Desk) -> str:
    return desk.session()


def put(desk, session, data=DATA):
    return desk.call("put-attachment", session_id=session, name="a.txt", mime="text/plain", data=data)


def test_a_file_comes_back_as_it_went_in(desk, session):
    answer = put(desk, session)
    attachment = answer["attachment"]
    assert attachment["sha256"] == hashlib.sha256(b"hello").hexdigest()
    assert attachment["size"] == 5
    ref = {"attachment_id": attachment["attachment_id"], "name": "a.txt", "mime": "text/plain", "size": 5}
    assert answer["block"] == {"type": "file", **ref}
    of = {"session_id": session, "attachment_id": attachment["attachment_id"]}
    assert desk.call("get-attachment", **of) == {"attachment": attachment, "data": None}
    assert desk.call("get-attachment", **of, include_data=True) == {"attachment": attachment, "data": DATA}
    assert desk.call("list-attachments", session_id=session) == {"attachments": [attachment]}


@pytest.mark.requirement("sessions.attachments.stored-once")
def test_equal_bytes_are_stored_once_until_the_last_one_goes(desk, session):
    one, two = put(desk, session)["attachment"], put(desk, desk.session())["attachment"]
    assert len(desk.dump()[4]) == 1
    for each in (one, two):
        where = {"session_id": each["session_id"], "attachment_id": each["attachment_id"]}
        assert len(desk.dump()[4]) == 1
        assert desk.call("delete-attachment", **where) == {"deleted": True}
        assert desk.call("delete-attachment", **where) == {"deleted": False}
    assert desk.dump()[3:] == [[], []]


@pytest.mark.requirement("sessions.attachments.in-use")
def test_a_file_that_is_referred_to_stays(desk, session):
    answer = put(desk, session)
    where = {"session_id": session, "attachment_id": answer["attachment"]["attachment_id"]}
    desk.call("append", session_id=session, message=user("root"), entry_id="root")
    nested = {"type": "function_result", "function_call_id": "c", "content": [answer["block"]]}
    message = {"role": "user", "content": [nested], "timestamp": 1}
    desk.call("append", session_id=session, message=message, entry_id="e")
    desk.call("set-active-leaf", session_id=session, entry_id="root")
    assert desk.code("delete-attachment", **where) == "session/attachment_in_use"
    desk.call("update-message", session_id=session, entry_id="e", content=user("no file")["content"])
    desk.call("set-draft", session_id=session, attachment_ids=[where["attachment_id"]])
    assert desk.code("delete-attachment", **where) == "session/attachment_in_use"
    desk.call("set-draft", session_id=session, attachment_ids=[])
    desk.say(session, f"the id {where['attachment_id']} in a text is no reference")
    assert desk.call("delete-attachment", **where) == {"deleted": True}


def test_a_fork_gets_what_its_path_refers_to_under_the_same_id(desk, session):
    used, unused = put(desk, session), put(desk, session, "QUJD")
    message = {"role": "user", "content": [used["block"]], "timestamp": 1}
    last = desk.call("append", session_id=session, message=message)["entry_id"]
    fork = desk.call("fork", session_id=session, entry_id=last)["session_id"]
    files = desk.call("list-attachments", session_id=fork)["attachments"]
    assert files == [{**used["attachment"], "session_id": fork}]
    assert unused["attachment"]["attachment_id"] not in {each["attachment_id"] for each in files}
    assert len(desk.dump()[4]) == 2


@pytest.mark.requirement("sessions.attachments.limit")
def test_size_and_encoding_are_checked_by_field(desk, session):
    desk.limits.attachment_bytes = 5
    put(desk, session)
    before = desk.dump()
    for size in (6, 7, 8, 100):
        with pytest.raises(Exception, match=r"session/attachment_too_large: `data`.*limit of 5"):
            put(desk, session, base64.b64encode(b"x" * size).decode())
    with pytest.raises(Exception, match="session/invalid_request: `data`: not base64"):
        put(desk, session, "%%%")
    assert desk.code("put-attachment", session_id="none", name="n", mime="m", data=DATA) == "session/not_found"
    assert desk.code("delete-attachment", session_id="none", attachment_id="a") == "session/not_found"
    assert desk.dump() == before
