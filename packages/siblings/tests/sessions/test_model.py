"""Any order of appends, branches, forks, updates and deletions against plain dictionaries (siblings 3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from iii_testing.session_desk import Desk, assistant, text, user

NAMES = st.sampled_from("abcdefgh")


class Model:
    """A session as plain dictionaries."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, Any]] = {}
        self.leaf: str | None = None

    def path(self, leaf: str | None) -> list[str]:
        path: list[str] = []
        while leaf is not None:
            path.append(leaf)
            leaf = self.entries[leaf]["parent"]
        return path[::-1]

    def messages(self) -> int:
        return sum(entry["message"] is not None for entry in self.entries.values())


class Sessions(RuleBasedStateMachine):
    sessions = Bundle("sessions")

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self.models: dict[str, Model] = {}

    @rule(target=sessions)
    def create(self) -> str:
        session = self.desk.session()
        self.models[session] = Model()
        return session

    @rule(session=sessions, name=NAMES, parent=st.none() | NAMES, said=st.text(min_size=1), custom=st.booleans())
    def append(self, session: str, name: str, parent: str | None, said: str, custom: bool) -> None:
        model = self.models[session]
        entry = {"custom": {"custom_type": "x", "data": said}} if custom else {"message": assistant(text(said))}
        request = {"session_id": session, "entry_id": name, "parent_id": parent, **entry}
        if name in model.entries:
            answer = self.desk.call("append", **request)
            assert answer["parent_id"] == model.entries[name]["parent"]
        elif parent is not None and parent not in model.entries:
            assert self.desk.code("append", **request) == "session/parent_not_found"
        else:
            parent = model.leaf if parent is None else parent
            assert self.desk.call("append", **request)["parent_id"] == parent
            model.entries[name] = {"parent": parent, "message": entry.get("message"), "revision": 0}
            model.leaf = name

    @rule(session=sessions, count=st.integers(1, 3))
    def append_many(self, session: str, count: int) -> None:
        model = self.models[session]
        messages = [user(str(index)) for index in range(count)]
        for entry_id, message in zip(
            self.desk.call("append-many", session_id=session, messages=messages)["entry_ids"], messages, strict=True
        ):
            model.entries[entry_id] = {"parent": model.leaf, "message": message, "revision": 0}
            model.leaf = entry_id

    @rule(session=sessions, name=NAMES, said=st.text(), expected=st.none() | st.integers(0, 2))
    def update(self, session: str, name: str, said: str, expected: int | None) -> None:
        entry = self.models[session].entries.get(name)
        request = {"session_id": session, "entry_id": name, "content": [text(said)], "expected_revision": expected}
        if entry is None:
            assert self.desk.code("update-message", **request) == "session/entry_not_found"
        elif entry["message"] is None:
            assert self.desk.code("update-message", **request) == "session/invalid_entry_kind"
        else:
            fits = expected in (None, entry["revision"])
            if fits:
                entry["revision"] += 1
                entry["message"] = {**entry["message"], "content": [text(said)]}
            answer = self.desk.call("update-message", **request)
            assert answer == {"updated": fits, "revision": entry["revision"]}

    @rule(session=sessions, name=NAMES)
    def set_active_leaf(self, session: str, name: str) -> None:
        model = self.models[session]
        if name in model.entries:
            self.desk.call("set-active-leaf", session_id=session, entry_id=name)
            model.leaf = name
        else:
            request = {"session_id": session, "entry_id": name}
            assert self.desk.code("set-active-leaf", **request) == "session/entry_not_found"

    @rule(target=sessions, session=sessions, name=NAMES)
    def fork(self, session: str, name: str) -> Any:
        model = self.models[session]
        if name not in model.entries:
            assert self.desk.code("fork", session_id=session, entry_id=name) == "session/entry_not_found"
            return multiple()
        fork = self.desk.call("fork", session_id=session, entry_id=name)["session_id"]
        copy = self.models[fork] = Model()
        for old, new in zip(model.path(name), self.desk.path(fork), strict=True):
            copy.entries[new] = {"parent": copy.leaf, "message": model.entries[old]["message"], "revision": 0}
            copy.leaf = new
        return fork

    @rule(session=consumes(sessions))
    def delete(self, session: str) -> None:
        assert self.desk.call("delete", session_id=session) == {"deleted": True}
        assert self.desk.call("delete", session_id=session) == {"deleted": False}
        del self.models[session]

    @invariant()
    def everything_is_as_in_the_model(self) -> None:
        for session, model in self.models.items():
            meta = self.desk.call("get", session_id=session)["meta"]
            assert meta["message_count"] == model.messages()
            path = model.path(model.leaf)
            items = self.desk.call("messages", session_id=session, include_custom=True, limit=500)["messages"]
            assert [item["entry_id"] for item in items] == path
            assert [item.get("message") for item in items] == [model.entries[each]["message"] for each in path]
            for entry_id in model.entries:
                entry = self.desk.call("get-message", session_id=session, entry_id=entry_id)["entry"]
                assert entry["parent_id"] == model.entries[entry_id]["parent"]
                assert entry["revision"] == model.entries[entry_id]["revision"]
                if entry_id in path:
                    after = self.desk.path(session, after_entry_id=entry_id)
                    assert after == path[path.index(entry_id) + 1 :]

    @invariant()
    def nothing_is_stored_that_no_session_owns(self) -> None:
        count = self.desk.db.execute("SELECT count(*) FROM entries").fetchone()[0]
        assert count == sum(len(model.entries) for model in self.models.values())
        orphans = "SELECT count(*) FROM branches WHERE session NOT IN (SELECT key FROM sessions)"
        assert self.desk.db.execute(orphans).fetchone()[0] == 0


TestSessions = pytest.mark.requirement("sessions.tree")(Sessions.TestCase)
TestSessions.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
