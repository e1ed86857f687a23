"""Appending entries and moving the active leaf (siblings 3.2, 3.4)."""

from __future__ import annotations

from typing import Any

import msgspec

from iii_contracts import session as contract
from iii_contracts.session_calls import AppendManyRequest, AppendRequest, SetActiveLeafRequest
from iii_kit.bus import Json
from iii_kit.errors import CodedError
from iii_kit.storage import Tx
from iii_siblings.sessions.events import Subject
from iii_siblings.sessions.parts import Parts
from iii_siblings.sessions.path import Place, entry_id_at, extend, locate, parent_of, place_after
from iii_siblings.sessions.schema import Head, bounded, head_of, unknown_session

MAX_BODY = 32 * 1024 * 1024
"""Bytes of one encoded message or record."""

INSERT = (
    "INSERT INTO entries(position, session, entry_id, role, timestamp, revision, origin, body) "
    "VALUES(?, ?, ?, ?, ?, 0, ?, ?)"
)
ADVANCE = "UPDATE sessions SET active_leaf = ?, message_count = message_count + ?, updated_at = ? WHERE key = ?"

LOOK = (
    "SELECT sessions.key, sessions.session_id, active_leaf, metadata, stored.position, stored.timestamp, "
    "leaf.entry_id, following.position FROM sessions "
    "LEFT JOIN entries AS stored ON stored.session = sessions.key AND stored.entry_id = ? "
    "LEFT JOIN entries AS leaf ON leaf.position = active_leaf "
    "LEFT JOIN entries AS following ON following.position = active_leaf + 1 WHERE sessions.session_id = ?"
)
"""Everything an append has to know, in one statement: it is the most frequent mutation of all."""


def append(parts: Parts, tx: Tx, request: AppendRequest) -> Json:
    """`session::append`: session, exactly one payload, known entry id, parent; then the entry."""
    row = tx.execute(LOOK, (request.entry_id, request.session_id)).fetchone()
    if row is None:
        raise unknown_session(request.session_id)
    key, session_id, leaf, metadata, stored, stored_at, leaf_id, following = row
    message, custom = request.message, request.custom
    if (message is None) == (custom is None):
        raise CodedError(contract.INVALID_REQUEST, "give exactly one of `message` and `custom`")
    if stored is not None:
        parent_id = entry_id_at(tx, parent_of(tx, stored))
        return {"entry_id": request.entry_id, "parent_id": parent_id, "timestamp": stored_at}
    head = Head(key, session_id, leaf, metadata)
    place = Place(leaf, leaf_id, following is not None)
    if request.parent_id is not None:
        place = _place_after(tx, head, request.parent_id)
    payload: dict[str, Any] = {"message": message}
    if custom is not None:
        payload = {"custom": {"custom_type": custom.custom_type, "data": custom.data}}
    entry_id = request.entry_id or f"e_{parts.world.ids.uuid()}"
    timestamp = parts.world.clock.now_ms()
    position = _insert(parts, tx, head, Entry(entry_id, place, payload, request.origin, timestamp))
    tx.execute(ADVANCE, (position, int(custom is None), timestamp, key))
    return {"entry_id": entry_id, "parent_id": place.parent_id, "timestamp": timestamp}


def append_many(parts: Parts, tx: Tx, request: AppendManyRequest) -> Json:
    """`session::append-many`: a chain of messages under fresh ids."""
    row = tx.execute(LOOK, (None, request.session_id)).fetchone()
    if row is None:
        raise unknown_session(request.session_id)
    head = Head(*row[:4])
    if not request.messages:
        raise CodedError(contract.EMPTY_BATCH, "`messages`: at least one message is needed")
    place = Place(head.active_leaf, row[6], row[7] is not None)
    if request.parent_id is not None:
        place = _place_after(tx, head, request.parent_id)
    timestamp = parts.world.clock.now_ms()
    entry_ids: list[str] = []
    for message in request.messages:
        entry_id = f"e_{parts.world.ids.uuid()}"
        entry = Entry(entry_id, place, {"message": message}, request.origin, timestamp)
        place = Place(_insert(parts, tx, head, entry), entry_id, is_taken=False)
        entry_ids.append(entry_id)
    tx.execute(ADVANCE, (place.parent, len(entry_ids), timestamp, head.key))
    return {"entry_ids": entry_ids, "last_entry_id": entry_ids[-1]}


def set_active_leaf(parts: Parts, tx: Tx, request: SetActiveLeafRequest) -> Json:
    """`session::set-active-leaf`: the next append follows this entry; tells nobody."""
    head = head_of(tx, request.session_id)
    position = locate(tx, head.key, request.entry_id)
    if position != head.active_leaf:
        tx.execute(
            "UPDATE sessions SET active_leaf = ?, updated_at = ? WHERE key = ?", (position, parts.now(), head.key)
        )
    return {"active_leaf": request.entry_id}


class Entry(msgspec.Struct):
    """One entry on its way in."""

    entry_id: str
    place: Place
    payload: dict[str, Any]
    origin: dict[str, Any] | None
    timestamp: int

    def told(self, session_id: str) -> dict[str, Any]:
        """The payload of `session::message-added`."""
        told: dict[str, Any] = {
            "session_id": session_id,
            "entry_id": self.entry_id,
            "parent_id": self.place.parent_id,
            **self.payload,
            "timestamp": self.timestamp,
        }
        if self.origin is not None:
            told["origin"] = self.origin
        return told


def body_text(name: str, body: Any) -> str:
    """JSON text of a message or record. Raises `session/invalid_request` naming the limit when it is too large."""
    text = bounded(name, body)
    if len(text) > MAX_BODY // 4 and len(text.encode()) > MAX_BODY:
        raise CodedError(
            contract.INVALID_REQUEST, f"`{name}`: {len(text.encode())} bytes of JSON, over the limit of {MAX_BODY}"
        )
    return text


def check_user_text(message: dict[str, Any], place: str) -> None:
    """Refuse a user message with an empty text block: providers refuse it for as long as the session lives."""
    if message["role"] != "user":
        return
    for index, block in enumerate(message["content"]):
        if block["type"] == "text" and not block["text"]:
            raise CodedError(contract.INVALID_REQUEST, f"`{place}.{index}.text`: must have at least 1 character")


def _place_after(tx: Tx, head: Head, parent_id: str) -> Place:
    place = place_after(tx, head.key, parent_id)
    if place is None:
        raise CodedError(contract.PARENT_NOT_FOUND, f"no entry {parent_id!r} in this session")
    return place


def _insert(parts: Parts, tx: Tx, head: Head, entry: Entry) -> int:
    message, role = entry.payload.get("message"), None
    if message is None:
        text = body_text("custom", entry.payload["custom"])
    else:
        check_user_text(message, "message.content")
        role, text = message["role"], body_text("message", message)
    position = extend(tx, head.key, entry.place)
    origin = None if entry.origin is None else bounded("origin", entry.origin)
    tx.execute(INSERT, (position, head.key, entry.entry_id, role, entry.timestamp, origin, text))
    subject = Subject(head.session_id, head.metadata, role)
    parts.events.tell(tx, contract.MESSAGE_ADDED, subject, lambda: entry.told(head.session_id))
    return position
