"""`session::*`, as harness and eval use it (siblings 3)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from iii_kit.bus import Call, Caller, Json
from iii_kit.errors import BusError

PAGE = 500
"""The largest page of a session manager."""


class SessionClient:
    """Transcripts, status and metadata of sessions."""

    def __init__(self, bus: Caller) -> None:
        self._bus = bus

    async def create(self, **fields: Any) -> dict[str, Any]:
        """`{session_id, meta}` of a fresh session; fields `title`, `description`, `metadata`, `kind`."""
        return await self._bus.call("session::create", fields)

    async def ensure(self, session_id: str, **fields: Any) -> dict[str, Any]:
        """`{session_id, meta, created}`; the fields apply only when the session is created."""
        answer = await self._bus.call("session::ensure", {"session_id": session_id, **fields})
        if not isinstance(answer.get("created"), bool) or answer["meta"]["session_id"] != session_id:
            raise BusError("session/invalid_response", f"session::ensure of {session_id} answered another session")
        return answer

    async def get(self, session_id: str) -> dict[str, Any] | None:
        """The meta, or None."""
        answer = await self._bus.call("session::get", {"session_id": session_id})
        return answer["meta"] if answer else None

    async def list(self, **filters: Any) -> list[dict[str, Any]]:
        """Every session that matches, over all pages; filters `status`, `metadata`, `order`."""
        found: list[dict[str, Any]] = []
        async for page in self._pages("session::list", {"limit": PAGE, **filters}):
            found.extend(page["sessions"])
        return found

    async def messages(self, session_id: str, **options: Any) -> list[dict[str, Any]]:
        """The active path, oldest first, over all pages; options of siblings 3.6."""
        found: list[dict[str, Any]] = []
        async for page in self._pages("session::messages", {"session_id": session_id, "limit": PAGE, **options}):
            found.extend(page["messages"])
        return found

    async def messages_tail(self, session_id: str, **options: Any) -> dict[str, Any]:
        """The newest page: `{messages, has_more, oldest_entry_id?}`."""
        return await self._bus.call("session::messages-tail", {"session_id": session_id, **options})

    async def messages_range(self, session_id: str, **selector: Any) -> dict[str, Any]:
        """Full entries of a range: `{messages, next_cursor?}`."""
        return await self._bus.call("session::messages-range", {"session_id": session_id, **selector})

    async def get_message(self, session_id: str, entry_id: str) -> dict[str, Any] | None:
        """The whole entry, or None."""
        answer = await self._bus.call("session::get-message", {"session_id": session_id, "entry_id": entry_id})
        return answer["entry"] if answer else None

    async def append(self, session_id: str, *, entry_id: str, **entry: Any) -> dict[str, Any]:
        """Append one entry, idempotent by `entry_id`; see `append_call`."""
        return await self._perform(append_call(session_id, entry_id=entry_id, **entry))

    async def update(self, session_id: str, entry_id: str, content: Sequence[Json], **fields: Any) -> dict[str, Any]:
        """Replace the content of a message; see `update_call`."""
        return await self._perform(update_call(session_id, entry_id, content, **fields))

    async def set_status(self, session_id: str, status: str, reason: str | None = None) -> dict[str, Any]:
        """Set the lifecycle status; the same status and reason is a no-op."""
        return await self._perform(set_status_call(session_id, status, reason))

    async def set_meta(self, session_id: str, **fields: Any) -> dict[str, Any]:
        """Set `title`, `description` or the whole `metadata` map; the new meta."""
        return (await self._bus.call("session::set-meta", {"session_id": session_id, **fields}))["meta"]

    async def fork(self, session_id: str, entry_id: str, title: str | None = None) -> dict[str, Any]:
        """Fork at an entry: `{session_id, meta}` of the new session."""
        titled = {} if title is None else {"title": title}
        return await self._bus.call("session::fork", {"session_id": session_id, "entry_id": entry_id, **titled})

    async def delete(self, session_id: str) -> bool:
        """Delete; False when there was none."""
        return (await self._bus.call("session::delete", {"session_id": session_id}))["deleted"]

    async def _perform(self, call: Call) -> dict[str, Any]:
        return await self._bus.call(call.fn, call.data)

    async def _pages(self, fn: str, request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        seen: set[str] = set()
        while True:
            page = await self._bus.call(fn, request)
            yield page
            cursor = page.get("next_cursor")
            if cursor is None:
                return
            if cursor in seen:
                raise BusError("session/invalid_cursor", f"{fn} answered the cursor {cursor!r} twice")
            seen.add(cursor)
            request = {**request, "cursor": cursor}


def append_call(
    session_id: str,
    *,
    entry_id: str,
    message: Json = None,
    custom: Json = None,
    parent_id: str | None = None,
    origin: Json = None,
) -> Call:
    """`session::append` of a message or a custom entry, for a sequence. Without `parent_id` it goes to the leaf."""
    data: dict[str, Any] = {"session_id": session_id, "entry_id": entry_id}
    fields = {"message": message, "custom": custom, "parent_id": parent_id, "origin": origin}
    data.update((name, value) for name, value in fields.items() if value is not None)
    return Call("session::append", data)


def update_call(session_id: str, entry_id: str, content: Sequence[Json], **fields: Any) -> Call:
    """`session::update-message`, for a sequence; fields of siblings 3.5, those that are None are left out."""
    data = {"session_id": session_id, "entry_id": entry_id, "content": list(content)}
    data.update((name, value) for name, value in fields.items() if value is not None)
    return Call("session::update-message", data)


def set_status_call(session_id: str, status: str, reason: str | None = None) -> Call:
    """`session::set-status`, for a sequence."""
    data = {"session_id": session_id, "status": status}
    return Call("session::set-status", data if reason is None else {**data, "reason": reason})
