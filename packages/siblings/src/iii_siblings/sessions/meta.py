"""Sessions themselves: creating, reading, changing and deleting them (siblings 3.1, 3.2)."""

from __future__ import annotations

from typing import Any, NamedTuple

from iii_contracts import session as contract
from iii_contracts.session_calls import (
    CreateRequest,
    EnsureRequest,
    OfSession,
    SetDraftRequest,
    SetMetaRequest,
    SetStatusRequest,
)
from iii_kit.bus import Json
from iii_kit.errors import CodedError
from iii_kit.storage import Reader, Tx
from iii_siblings.sessions.attachments import attachments_of, drop_bytes
from iii_siblings.sessions.events import Subject
from iii_siblings.sessions.parts import Parts
from iii_siblings.sessions.schema import bounded, decode, encode, unknown_session

COLUMNS = (
    "key, session_id, title, description, status, status_reason, kind, metadata, forked_from, draft, "
    "draft_attachment_ids, message_count, created_at, updated_at"
)


class Row(NamedTuple):
    """A session as stored, in the order of `COLUMNS`."""

    key: int
    session_id: str
    title: str
    description: str
    status: str
    status_reason: str | None
    kind: str
    metadata: str | None
    forked_from: str | None
    draft: str | None
    draft_attachment_ids: str | None
    message_count: int
    created_at: int
    updated_at: int


def row_of(reader: Reader, session_id: str) -> Row | None:
    """The stored session, or None."""
    row = reader.execute(f"SELECT {COLUMNS} FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
    return None if row is None else Row(*row)


def known_row(reader: Reader, session_id: str) -> Row:
    """The stored session. Raises `session/not_found`."""
    row = row_of(reader, session_id)
    if row is None:
        raise unknown_session(session_id)
    return row


def meta_of(reader: Reader, row: Row) -> dict[str, Any]:
    """`SessionMeta` on the wire; what is not set is absent."""
    meta: dict[str, Any] = {
        "session_id": row.session_id,
        "title": row.title,
        "description": row.description,
        "status": row.status,
        "kind": row.kind,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "message_count": row.message_count,
    }
    if row.status_reason is not None:
        meta["status_reason"] = row.status_reason
    if row.metadata is not None:
        meta["metadata"] = decode(row.metadata)
    if row.forked_from is not None:
        meta["forked_from"] = row.forked_from
    if row.draft is not None:
        meta["draft"] = row.draft
    if row.draft_attachment_ids is not None:
        stored = {item["attachment_id"]: item for item in attachments_of(reader, row.key, row.session_id)}
        meta["draft_attachments"] = [stored[each] for each in decode(row.draft_attachment_ids)]
    return meta


class Birth(NamedTuple):
    """What a session starts with."""

    session_id: str
    title: str
    description: str
    kind: str
    metadata: str | None
    forked_from: str | None = None


def create(parts: Parts, tx: Tx, request: CreateRequest) -> Json:
    """`session::create`."""
    session_id = f"s_{parts.world.ids.uuid()}"
    return {"session_id": session_id, "meta": _create(parts, tx, session_id, request)}


def ensure(parts: Parts, tx: Tx, request: EnsureRequest) -> Json:
    """`session::ensure`: what exists is read and stays as it is."""
    row = row_of(tx, request.session_id)
    meta = _create(parts, tx, request.session_id, request) if row is None else meta_of(tx, row)
    return {"session_id": request.session_id, "meta": meta, "created": row is None}


def insert(parts: Parts, tx: Tx, birth: Birth) -> Row:
    """Store a new session and tell it."""
    now = parts.now()
    tx.execute(
        "INSERT INTO sessions(session_id, title, description, status, kind, metadata, forked_from, message_count, "
        "created_at, updated_at) VALUES(?, ?, ?, 'idle', ?, ?, ?, 0, ?, ?)",
        (*birth, now, now),
    )
    told: dict[str, Any] = {
        "session_id": birth.session_id,
        "title": birth.title,
        "description": birth.description,
        "status": "idle",
        "created_at": now,
    }
    if birth.forked_from is not None:
        told["forked_from"] = birth.forked_from
    parts.events.tell(tx, contract.CREATED, Subject(birth.session_id, birth.metadata), lambda: told)
    return known_row(tx, birth.session_id)


def get(parts: Parts, reader: Reader, request: OfSession) -> Json:
    """`session::get`."""
    row = row_of(reader, request.session_id)
    return None if row is None else {"meta": meta_of(reader, row)}


def set_meta(parts: Parts, tx: Tx, request: SetMetaRequest) -> Json:
    """`session::set-meta`: with nothing given it only reads."""
    row = known_row(tx, request.session_id)
    if request.title is None and request.description is None and request.metadata is None:
        return {"meta": meta_of(tx, row)}
    row = row._replace(
        title=row.title if request.title is None else request.title,
        description=row.description if request.description is None else request.description,
        metadata=row.metadata if request.metadata is None else bounded("metadata", request.metadata),
        updated_at=parts.now(),
    )
    tx.execute(
        "UPDATE sessions SET title = ?, description = ?, metadata = ?, updated_at = ? WHERE key = ?",
        (row.title, row.description, row.metadata, row.updated_at, row.key),
    )
    meta = meta_of(tx, row)
    told = {name: meta[name] for name in ("session_id", "title", "description", "metadata") if name in meta}
    told["timestamp"] = row.updated_at
    parts.events.tell(tx, contract.META_UPDATED, Subject(row.session_id, row.metadata), lambda: told)
    return {"meta": meta}


def set_draft(parts: Parts, tx: Tx, request: SetDraftRequest) -> Json:
    """`session::set-draft`: silent, and no change of the session's time."""
    row = known_row(tx, request.session_id)
    draft, attached = row.draft, row.draft_attachment_ids
    if "draft" in request.model_fields_set:
        draft = request.draft if request.draft and request.draft.strip() else None
    if request.attachment_ids is not None:
        _check_attached(tx, row, request.attachment_ids)
        attached = encode(request.attachment_ids) if request.attachment_ids else None
    if (draft, attached) != (row.draft, row.draft_attachment_ids):
        tx.execute("UPDATE sessions SET draft = ?, draft_attachment_ids = ? WHERE key = ?", (draft, attached, row.key))
    return {"draft": draft}


def set_status(parts: Parts, tx: Tx, request: SetStatusRequest) -> Json:
    """`session::set-status`: the same status with the same reason changes nothing."""
    row = tx.execute(
        "SELECT key, metadata, status, status_reason FROM sessions WHERE session_id = ?", (request.session_id,)
    ).fetchone()
    if row is None:
        raise unknown_session(request.session_id)
    key, metadata, previous, previous_reason = row
    status = request.status
    reason = None if status == "idle" else request.reason
    answer = {"status": status, "previous_status": previous}
    if (status, reason) == (previous, previous_reason):
        return answer
    now = parts.now()
    tx.execute(
        "UPDATE sessions SET status = ?, status_reason = ?, updated_at = ? WHERE key = ?",
        (status, reason, now, key),
    )
    told: dict[str, Any] = {"session_id": request.session_id, **answer, "timestamp": now}
    if reason is not None:
        told["status_reason"] = reason
    parts.events.tell(tx, contract.STATUS_CHANGED, Subject(request.session_id, metadata), lambda: told)
    return answer


def delete(parts: Parts, tx: Tx, request: OfSession) -> Json:
    """`session::delete`: forks of the session stay."""
    row = row_of(tx, request.session_id)
    if row is None:
        return {"deleted": False}
    for table in ("entries", "branches"):
        tx.execute(f"DELETE FROM {table} WHERE session = ?", (row.key,))
    digests = [each["sha256"] for each in attachments_of(tx, row.key, row.session_id)]
    tx.execute("DELETE FROM attachments WHERE session = ?", (row.key,))
    drop_bytes(tx, digests)
    tx.execute("DELETE FROM sessions WHERE key = ?", (row.key,))
    told = {"session_id": row.session_id, "timestamp": parts.now()}
    parts.events.tell(tx, contract.DELETED, Subject(row.session_id, row.metadata), lambda: told)
    return {"deleted": True}


def _create(parts: Parts, tx: Tx, session_id: str, request: CreateRequest) -> dict[str, Any]:
    metadata = None if request.metadata is None else bounded("metadata", request.metadata)
    kind = request.kind or "user"
    birth = Birth(session_id, request.title or "", request.description or "", kind, metadata)
    return meta_of(tx, insert(parts, tx, birth))


def _check_attached(tx: Tx, row: Row, attachment_ids: list[str]) -> None:
    known = {each["attachment_id"] for each in attachments_of(tx, row.key, row.session_id)}
    for index, attachment_id in enumerate(attachment_ids):
        if attachment_id not in known:
            raise CodedError(
                contract.INVALID_REQUEST, f"`attachment_ids.{index}`: this session has no attachment {attachment_id!r}"
            )
