"""Active paths in memory (harness-loop 6.3 step 8): read whole once, then grown by the loop's own writes.

The answer of an append names the entry before it. While that is the last one known here, nobody else wrote and there is
nothing to read; else what is new is read. A store that keeps less of a reply than was written is read at every step.
Bounded by sessions; a session's path is dropped when its turn ends, when a step runs again, and with the connection.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from iii_harness.decide.growing_window import GrowingWindow
from iii_harness.errors import dependency
from iii_harness.ports import Item
from iii_harness.shell.offers import Offer
from iii_kit.bus import Call, Caller, Json, Opts
from iii_kit.clients.session import PAGE
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger

log = logger(__name__)

CACHED = 1024
"""Sessions whose path is kept."""

MESSAGES = "session::messages"
UPDATE = "session::update-message"

ADDRESS = ("session_id", "entry_id", "origin")
"""Fields of an update that are not fields of the message."""


class Path(list[Item]):
    """The entries of one session, oldest first, and what was made of them so far."""

    def __init__(self, items: list[Item], *, followed: bool) -> None:
        super().__init__()
        self.window = GrowingWindow()
        self.offer: Offer | None = None
        """What its last step offered the model."""
        self.customs = 0
        """How many of its entries are custom ones."""
        self.followed = followed
        """True while every entry behind the last one that was read is known to be the loop's own."""
        self.fresh = items
        """What the last loading read."""
        self.trusted = False
        """True when the last loading read nothing, so that the next append must show that nothing was missed."""
        self.grow(items)

    def grow(self, items: Iterable[Item]) -> None:
        """Add entries at the end."""
        for item in items:
            self.append(item)
            self.customs += item.custom_type is not None


class Paths:
    """The active path of each running session. `keeps_replies`: the store gives back what was written."""

    def __init__(self, bus: Caller, opts: Callable[[], Opts], keeps_replies: Callable[[], bool]) -> None:
        self._bus = bus
        self._opts = opts
        self._keeps_replies = keeps_replies
        self._known: OrderedDict[str, Path] = OrderedDict()

    async def load(self, session_id: str, *, trusting: bool = False) -> Path:
        """The path up to its leaf, oldest first. The list grows with the next load: copy nothing, keep no index.

        `trusting`: a path that was followed up to here is taken as it is; ask `missed` after the next append.
        """
        known = self._known.get(session_id)
        if known:
            known.trusted = trusting and known.followed
            known = known if known.trusted else await self._extended(session_id, known)
        if not known:
            known = Path(await self._after(session_id, None), followed=self._keeps_replies())
        self._known[session_id] = known
        if len(self._known) > CACHED:
            self._known.popitem(last=False)
        return known

    def missed(self, session_id: str) -> bool:
        """True when a path that was taken without reading lacked an entry of somebody else."""
        known = self._known.get(session_id)
        return known is not None and known.trusted and not known.followed

    def wrote(self, session_id: str, calls: Sequence[Call], answers: Sequence[Json], entries: Iterable[int]) -> None:
        """Follow writes of the loop that are done: those of the `calls` at `entries` wrote the transcript."""
        known = self._known.get(session_id)
        if known is None:
            return
        for at in entries:
            call = calls[at]
            if call.fn == UPDATE:
                _rewrite(known, call.data)
            elif known.followed:
                known.followed = bool(known) and answers[at]["parent_id"] == known[-1].entry_id
                if known.followed:
                    known.grow((_appended(call.data),))

    def doubt(self, session_id: str) -> None:
        """Entries were appended that are not followed here: the next load reads them."""
        known = self._known.get(session_id)
        if known is not None:
            known.followed = False

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

    async def _extended(self, session_id: str, known: Path) -> Path | None:
        """A known path with what is new behind it; None when it is no longer the active one."""
        try:
            known.fresh = await self._after(session_id, known[-1].entry_id)
        except BusError as error:
            if isinstance(error, EpochEnded) or not error.matches("session/invalid_cursor"):
                raise
            return None
        known.grow(known.fresh)
        known.followed = self._keeps_replies()
        return known

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


def _appended(data: dict[str, Any]) -> Item:
    """The entry that an append made."""
    if "message" in data:
        return Item(data["entry_id"], message=data["message"], origin=data["origin"])
    custom = data["custom"]
    return Item(data["entry_id"], custom_type=custom["custom_type"], data=custom["data"])


def _rewrite(path: Path, data: dict[str, Any]) -> None:
    """Give an entry at the end of the path the content and the final state that an update gave it."""
    for index in range(len(path) - 1, -1, -1):
        item = path[index]
        if item.entry_id == data["entry_id"] and item.message is not None:
            message = {**item.message, **data}
            for name in ADDRESS:
                del message[name]
            path[index] = Item(item.entry_id, message=message, origin=data["origin"])
            return


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
