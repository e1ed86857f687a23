"""Which sessions may have a turn that is not over (harness-loop 9.6): read by recovery where all records are too many.

`state::list` answers with a whole scope, and the records of ended turns stay in theirs: some fifty thousand of them
are more than one message may carry. So a session gets a small row of its own before the first record of a turn that
runs, and loses it in a sweep that finds the turn over. A row too many is harmless; one too few cannot be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from iii_kit.bus import Call, Opts

RUNNING: Final = "harness_running"


class RunningIndex:
    """The rows, and which of them are known to be on disk."""

    def __init__(self, opts: Callable[[], Opts]) -> None:
        self._opts = opts
        self._known: set[str] = set()

    def mark(self, session_id: str) -> list[Call]:
        """The calls that come before the record of a turn that runs: none once the row is known to be there."""
        if session_id in self._known:
            return []
        data = {"scope": RUNNING, "key": session_id, "value": {"session_id": session_id}}
        return [Call("state::set", data, opts=self._opts())]

    def marked(self, session_id: str) -> None:
        """The row is on disk."""
        self._known.add(session_id)

    def drop(self, session_id: str) -> Call:
        """The call that deletes the row; from here on it is not known to be there."""
        self._known.discard(session_id)
        return Call("state::delete", {"scope": RUNNING, "key": session_id}, opts=self._opts())

    def renewed(self) -> None:
        """Another process may have swept meanwhile."""
        self._known.clear()

    @staticmethod
    def session_of(row: Any) -> str | None:
        """The session of a stored row."""
        session_id: Any = cast("dict[str, Any]", row).get("session_id") if isinstance(row, dict) else None
        return session_id if isinstance(session_id, str) else None
