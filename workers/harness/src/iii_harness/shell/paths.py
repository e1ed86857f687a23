"""Active paths in memory (harness-loop 6.3 step 8): read whole once, then only what is new.

Bounded by sessions; a session's path is dropped when its turn ends, when a step runs again, and with the connection.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, cast

from iii_harness.decide.growing_window import GrowingWindow
from iii_harness.errors import dependency
from iii_harness.ports import Item
from iii_kit.bus import Caller, Json, Opts
from iii_kit.clients.session import PAGE
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger

log = logger(__name__)

CACHED = 1024
"""Sessions whose path is kept."""

MESSAGES = "session::messages"


class Path(list[Item]):
    """The entries of one session, oldest first, and the window made of them so far."""

    def __init__(self, items: Iterable[Item]) -> None:
        super().__init__(items)
        self.window = GrowingWindow()


class Paths:
    """The active path of each running session."""

    def __init__(self, bus: Caller, opts: Callable[[], Opts]) -> None:
        self._bus = bus
        self._opts = opts
        self._known: OrderedDict[str, Path] = OrderedDict()

    async def load(self, session_id: str) -> Path:
        """The path up to its leaf, oldest first. The list grows with the next load: copy nothing, keep no index."""
        known = self._known.get(session_id)
        if known:
            try:
                known.extend(await self._after(session_id, known[-1].entry_id))
            except BusError as error:
                if isinstance(error, EpochEnded) or not error.matches("session/invalid_cursor"):
                    raise
                known = None
        if not known:
            known = Path(await self._after(session_id, None))
        self._known[session_id] = known
        self._known.move_to_end(session_id)
        if len(self._known) > CACHED:
            self._known.popitem(last=False)
        return known

    async def spoken_after(self, session_id: str, entry_id: str | None) -> bool:
        """True when a user message stands behind `entry_id` (10.5); position decides, never time."""
        request: dict[str, Any] = {"session_id": session_id, "roles": ["user"], "limit": 1}
        if entry_id is not None:
            request["after_entry_id"] = entry_id
        try:
            page = await self._call(request)
        except BusError as error:
            if isinstance(error, EpochEnded) or not error.matches("session/invalid_cursor"):
                raise
            seen = {item.entry_id for item in self._known.get(session_id, ())}
            items = await self._after(session_id, None)
            return any(
                i.message is not None and i.message.get("role") == "user" and i.entry_id not in seen for i in items
            )
        return bool(page.get("messages"))

    def drop(self, session_id: str) -> None:
        """Forget a path."""
        self._known.pop(session_id, None)

    def renewed(self) -> None:
        """A new connection begins."""
        self._known.clear()

    async def _after(self, session_id: str, entry_id: str | None) -> list[Item]:
        request: dict[str, Any] = {"session_id": session_id, "include_custom": True, "limit": PAGE}
        if entry_id is not None:
            request["after_entry_id"] = entry_id
        items: list[Item] = []
        seen: set[str] = set()
        while True:
            page = await self._call(request)
            items.extend(item for row in page.get("messages", ()) if (item := _item(row)) is not None)
            cursor = page.get("next_cursor")
            if cursor is None:
                return items
            if cursor in seen:
                raise dependency(MESSAGES, BusError("session/invalid_cursor", f"the cursor {cursor!r} came twice"))
            seen.add(cursor)
            request = {**request, "cursor": cursor}

    async def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return cast("dict[str, Any]", await self._bus.call(MESSAGES, request, opts=self._opts()))
        except EpochEnded:
            raise
        except BusError as error:
            if error.matches("session/invalid_cursor"):
                raise
            raise dependency(MESSAGES, error) from error


def _item(row: Json) -> Item | None:
    """One entry of an answer; one that is neither message nor custom entry is skipped with a warning."""
    fields = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
    entry_id, message, custom = fields.get("entry_id"), fields.get("message"), fields.get("custom")
    if isinstance(entry_id, str) and isinstance(message, dict):
        return Item(entry_id, message=cast("dict[str, Any]", message), origin=fields.get("origin"))
    if isinstance(entry_id, str) and isinstance(custom, dict):
        data = cast("dict[str, Any]", custom)
        kind = data.get("custom_type")
        return Item(entry_id, custom_type=kind if isinstance(kind, str) else "", data=data.get("data"))
    log.warning("transcript_entry_skipped", entry=str(entry_id))
    return None
