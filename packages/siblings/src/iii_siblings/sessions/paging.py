"""Reading in pages: sessions, the active path, single entries (siblings 3.3, 3.6)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

import msgspec

from iii_contracts import session as contract
from iii_contracts.session_calls import GetMessageRequest, ListRequest, MessagesRequest, RangeRequest
from iii_contracts.session_model import ListOrder
from iii_kit.bus import Json
from iii_kit.errors import CodedError
from iii_kit.storage import Reader
from iii_siblings.sessions.append import MAX_BODY
from iii_siblings.sessions.items import ENTRY_COLUMNS, EntryRow, entry_of, rows_of, stored_item
from iii_siblings.sessions.meta import COLUMNS, Row, meta_of
from iii_siblings.sessions.parts import Parts
from iii_siblings.sessions.path import Span, entry_id_at, find, is_on, locate, parent_of, path_after, path_to
from iii_siblings.sessions.schema import Head, encoded, head_of, includes, unknown_session

_ORDERS: dict[ListOrder, tuple[str, str, str]] = {
    "updated_desc": ("updated_at", "<", "DESC"),
    "created_desc": ("created_at", "<", "DESC"),
    "created_asc": ("created_at", ">", "ASC"),
}


_LOOK = (
    "SELECT key, active_leaf, position FROM sessions "
    "LEFT JOIN entries ON entries.session = key AND entry_id = ? WHERE sessions.session_id = ?"
)
"""Where a read of a path begins, in one statement: every step makes one."""


def list_sessions(parts: Parts, reader: Reader, request: ListRequest) -> Json:
    """`session::list`."""
    size = parts.limits.page_size(request.limit)
    order: ListOrder = request.order or "updated_desc"
    sessions: list[dict[str, Any]] = []
    last: Row | None = None
    for row in _candidates(reader, request, order):
        if not includes(row.metadata, request.metadata):
            continue
        if last is not None and len(sessions) == size:
            return {"sessions": sessions, "next_cursor": _cursor(order, last)}
        sessions.append(meta_of(reader, row))
        last = row
    return {"sessions": sessions}


def messages(parts: Parts, reader: Reader, request: MessagesRequest) -> Json:
    """`session::messages`: a page of the path, oldest first."""
    row = reader.execute(_LOOK, (request.after_entry_id, request.session_id)).fetchone()
    if row is None:
        raise unknown_session(request.session_id)
    key, leaf, after = row
    if request.from_entry_id is not None:
        leaf = locate(reader, key, request.from_entry_id)
    starts: list[int] = []
    if request.after_entry_id is not None:
        starts.append(_placed(after, "after_entry_id", request.after_entry_id))
    if request.cursor is not None:
        starts.append(_placed(find(reader, key, request.cursor), "cursor", request.cursor))
    where, args = "", ()
    if request.roles is not None:
        where, args = f"AND role IN ({', '.join('?' * len(request.roles))})", tuple(request.roles)
    elif not request.include_custom:
        where = "AND role IS NOT NULL"
    size = parts.limits.page_size(request.limit)
    rows = list(rows_of(reader, _path(reader, leaf, starts), where=where, args=args, limit=size + 1))
    return _page(rows, size, image_data=request.include_image_data)


def messages_range(parts: Parts, reader: Reader, request: RangeRequest) -> Json:
    """`session::messages-range`: the span between two entries, or entries of the active path by id."""
    head = head_of(reader, request.session_id)
    span = request.from_entry_id is not None and request.to_entry_id is not None
    half = (request.from_entry_id is None) != (request.to_entry_id is None)
    if half or span == (request.entry_ids is not None):
        raise CodedError(
            contract.INVALID_REQUEST, "give exactly one of `from_entry_id` with `to_entry_id`, and `entry_ids`"
        )
    path = _listed(reader, head, request.entry_ids) if request.entry_ids is not None else _span(reader, head, request)
    if request.cursor is not None:
        position = _placed(find(reader, head.key, request.cursor), "cursor", request.cursor)
        if not is_on(path, position):
            raise _bad_cursor("cursor", request.cursor)
        path = _rest(path, position)
    size = parts.limits.page_size(request.limit)
    return _page(list(rows_of(reader, path, limit=size + 1)), size, image_data=request.include_image_data)


def get_message(parts: Parts, reader: Reader, request: GetMessageRequest) -> Json:
    """`session::get-message`: null for an unknown session or entry."""
    row = reader.execute(
        f"SELECT {ENTRY_COLUMNS} FROM entries WHERE entry_id = ? "
        "AND session = (SELECT key FROM sessions WHERE session_id = ?)",
        (request.entry_id, request.session_id),
    ).fetchone()
    if row is None:
        return None
    entry = EntryRow(*row)
    parent_id = entry_id_at(reader, parent_of(reader, entry.position))
    return {"entry": entry_of(entry, parent_id, image_data=request.include_image_data)}


def _candidates(reader: Reader, request: ListRequest, order: ListOrder) -> Iterator[Row]:
    column, beyond, direction = _ORDERS[order]
    conditions: list[str] = []
    args: list[Any] = []
    if request.cursor is not None:
        conditions.append(f"({column}, session_id) {beyond} (?, ?)")
        args.extend(_cursor_key(order, request.cursor))
    if request.status is not None:
        conditions.append("status = ?")
        args.append(request.status)
    parent = (request.metadata or {}).get("parent_session_id")
    if isinstance(parent, str):
        conditions.append("json_extract(metadata, '$.parent_session_id') = ?")
        args.append(parent)
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    sql = f"SELECT {COLUMNS} FROM sessions {where}ORDER BY {column} {direction}, session_id {direction}"
    return (Row(*row) for row in reader.execute(sql, args))


def _cursor(order: ListOrder, row: Row) -> str:
    key = row.updated_at if order == "updated_desc" else row.created_at
    return base64.urlsafe_b64encode(msgspec.json.encode((order, key, row.session_id))).decode()


def _cursor_key(order: ListOrder, cursor: str) -> tuple[int, str]:
    try:
        made_for, key, session_id = msgspec.json.decode(
            base64.b64decode(cursor, altchars=b"-_", validate=True), type=tuple[str, int, str]
        )
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise CodedError(contract.INVALID_CURSOR, "`cursor`: not a cursor of `session::list`") from None
    if made_for != order:
        raise CodedError(contract.INVALID_CURSOR, f"`cursor`: made for order `{made_for}`, not `{order}`")
    return key, session_id


def _placed(position: int | None, name: str, entry_id: str) -> int:
    if position is None:
        raise _bad_cursor(name, entry_id)
    return position


def _path(reader: Reader, leaf: int | None, starts: list[int]) -> list[Span]:
    """The path to `leaf` behind the later of `starts`, each of which must be on it."""
    if not starts:
        return path_to(reader, leaf)
    paths = [path_after(reader, leaf, start) for start in starts]
    found = [path for path in paths if path is not None]
    if len(found) < len(paths):
        raise CodedError(contract.INVALID_CURSOR, "the entry to continue after is not on the path")
    if len(found) == 1:
        return found[0]
    return min(found, key=lambda path: sum(span.last - span.first + 1 for span in path))


def _span(reader: Reader, head: Head, request: RangeRequest) -> list[Span]:
    assert request.from_entry_id is not None
    assert request.to_entry_id is not None
    first = locate(reader, head.key, request.from_entry_id)
    last = locate(reader, head.key, request.to_entry_id)
    rest = path_after(reader, last, first)
    if rest is None:
        raise CodedError(contract.INVALID_REQUEST, "`from_entry_id` is not on the path to `to_entry_id`")
    return [Span(first, first), *rest]


def _listed(reader: Reader, head: Head, entry_ids: list[str]) -> list[Span]:
    path = path_to(reader, head.active_leaf)
    positions = {locate(reader, head.key, entry_id) for entry_id in entry_ids}
    listed = [
        Span(position, position)
        for span in path
        for position in sorted(each for each in positions if span.first <= each <= span.last)
    ]
    if len(listed) < len(positions):
        raise CodedError(contract.ENTRY_NOT_FOUND, "`entry_ids` names an entry that is not on the active path")
    return listed


def _rest(path: list[Span], position: int) -> list[Span]:
    for index, span in enumerate(path):
        if span.first <= position <= span.last:
            own = [Span(position + 1, span.last)] if position < span.last else []
            return own + path[index + 1 :]
    return []


def _page(rows: list[EntryRow], size: int, *, image_data: bool) -> Json:
    if sum([len(row.body) for row in rows]) > MAX_BODY // 4:
        size = min(size, _fitting(rows))
    page: dict[str, Any] = {"messages": [stored_item(row, image_data=image_data) for row in rows[:size]]}
    if len(rows) > size:
        page["next_cursor"] = rows[size - 1].entry_id
    return encoded(page)


def _fitting(rows: list[EntryRow]) -> int:
    """How many rows one answer can carry; never none."""
    total = 0
    for count, row in enumerate(rows):
        total += len(row.body) if row.body.isascii() else len(row.body.encode())
        if total > MAX_BODY and count > 0:
            return count
    return len(rows)


def _bad_cursor(name: str, entry_id: str) -> CodedError:
    return CodedError(contract.INVALID_CURSOR, f"`{name}`: entry {entry_id!r} is not on the path")
