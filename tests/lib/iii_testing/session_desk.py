"""The functions of the session store straight over a database in memory, for tests of what they do."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from iii_contracts.spec import TriggerSpec
from iii_kit.bus import Call
from iii_kit.encoding import copy
from iii_kit.errors import CodedError
from iii_siblings.sessions import FAMILY
from iii_siblings.sessions.events import Subject
from iii_siblings.sessions.install import READS, WRITES
from iii_siblings.sessions.parts import Limits, Parts
from iii_testing.world import ManualWorld, manual_world


class Heard:
    """Events as told inside transactions, with the subject that filters judge."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []
        self.subjects: list[Subject] = []

    def tell(self, tx: Any, spec: TriggerSpec, subject: Subject, payload: Callable[[], Any]) -> None:
        self.subjects.append(subject)
        self.events.append((spec.id, payload()))

    def take(self) -> list[tuple[str, Any]]:
        taken, self.events = self.events, []
        return taken


class Desk:
    """Call functions by name; every write is one savepoint, as in the writer."""

    def __init__(self, world: ManualWorld | None = None) -> None:
        self.world = world or manual_world()
        self.heard = Heard()
        self.limits = Limits()
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        for statements in FAMILY.migrations:
            for statement in statements:
                self.db.execute(statement)
        parts = Parts(self.world, self.heard, self.limits)  # type: ignore[arg-type]
        self._writes = {spec.id: (spec, run) for spec, run in WRITES}
        self._reads = {spec.id: (spec, run) for spec, run, _ in READS}
        self._parts = parts

    def execute(self, sql: str, args: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self.db.execute(sql, args)

    def after_commit(self, call: Call) -> None:
        raise AssertionError("events are recorded before they become calls")

    def call(self, name: str, /, **data: Any) -> Any:
        """The answer of `session::<name>`; raises `CodedError` as the bus would."""
        function_id = f"session::{name}"
        writing = function_id in self._writes
        spec, run = self._writes[function_id] if writing else self._reads[function_id]
        request, problem = spec.parse(data)
        if problem is not None:
            raise CodedError(spec.invalid, problem)
        if not writing:
            return copy(run(self._parts, self, request))
        told = len(self.heard.events)
        self.db.execute("SAVEPOINT call")
        try:
            answer = run(self._parts, self, request)
        except BaseException:
            self.db.execute("ROLLBACK TO call")
            self.db.execute("RELEASE call")
            del self.heard.events[told:]
            raise
        self.db.execute("RELEASE call")
        return copy(answer)

    def code(self, name: str, /, **data: Any) -> str:
        """The error code of a call that must fail."""
        try:
            answer = self.call(name, **data)
        except CodedError as error:
            return error.code
        raise AssertionError(f"session::{name} answered {answer!r}")

    def dump(self) -> list[Any]:
        """Everything stored."""
        tables = ("sessions", "branches", "entries", "attachments", "attachment_bytes")
        return [self.db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables]

    def session(self, **fields: Any) -> str:
        """A new session."""
        return self.call("create", **fields)["session_id"]

    def say(self, session_id: str, text: str, **fields: Any) -> str:
        """Append a user message; returns its entry id."""
        return self.call("append", session_id=session_id, message=user(text), **fields)["entry_id"]

    def path(self, session_id: str, **options: Any) -> list[str]:
        """Entry ids of the active path, bookkeeping included."""
        answer = self.call("messages", session_id=session_id, include_custom=True, limit=500, **options)
        return [item["entry_id"] for item in answer["messages"]]


def user(text: str) -> dict[str, Any]:
    """A user message."""
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}


def assistant(*content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """An assistant message."""
    message = {"role": "assistant", "content": list(content), "stop_reason": "end", "model": "m", "provider": "p"}
    return {**message, "timestamp": 2, **fields}


def text(value: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": value}


def call_block(call_id: str, function_id: str = "a::b", **fields: Any) -> dict[str, Any]:
    """A call block."""
    return {"type": "function_call", "id": call_id, "function_id": function_id, "arguments": {"x": 1}, **fields}


def result(call_id: str, value: str = "done", **fields: Any) -> dict[str, Any]:
    """A function result."""
    message = {"role": "function_result", "function_call_id": call_id, "function_id": "a::b", "content": [text(value)]}
    return {**message, "details": {"k": 1}, "is_error": False, "timestamp": 3, **fields}
