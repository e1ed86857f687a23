"""The titles of sessions, by which viewers of traces name them (harness-loop 17): best effort, read where somebody
traces and once a turn."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, cast

from opentelemetry import trace

from iii_contracts.problems import is_object
from iii_harness.shell.parts import Parts
from iii_kit.errors import BusError, EpochEnded

KNOWN: Final = 1024
"""Sessions whose title is remembered."""

LONGEST: Final = 200
"""Characters of a title that travel with every call."""


class SessionNames:
    """Reads and remembers titles."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._known: OrderedDict[str, tuple[str, str | None]] = OrderedDict()

    async def of(self, session_id: str, turn_id: str) -> str | None:
        """The title of a session as its turn began; None without one, and where nobody traces."""
        if not trace.get_current_span().get_span_context().is_valid:
            return None
        known = self._known.get(session_id)
        if known is None or known[0] != turn_id:
            known = self._known[session_id] = (turn_id, await self._title(session_id))
            self._known.move_to_end(session_id)
            if len(self._known) > KNOWN:
                self._known.popitem(last=False)
        return known[1]

    async def _title(self, session_id: str) -> str | None:
        try:
            answer = await self._parts.bus.call(
                "session::get", {"session_id": session_id}, opts=self._parts.session_opts()
            )
        except EpochEnded:
            raise
        except BusError:
            return None
        meta = cast("dict[str, Any]", answer).get("meta") if is_object(answer) else None
        title = cast("dict[str, Any]", meta).get("title") if is_object(meta) else None
        return (title.strip()[:LONGEST] or None) if isinstance(title, str) else None
