"""Files of a session; their bytes are stored once per digest (siblings 3.2)."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, cast

from iii_contracts import session as contract
from iii_contracts.session_calls import AttachmentRequest, GetAttachmentRequest, OfSession, PutAttachmentRequest
from iii_kit.bus import Json
from iii_kit.errors import CodedError
from iii_kit.storage import Reader, Tx
from iii_siblings.sessions.parts import Parts
from iii_siblings.sessions.schema import decode, head_of

_COLUMNS = "attachment_id, name, mime, size, sha256, created_at"


def put_attachment(parts: Parts, tx: Tx, request: PutAttachmentRequest) -> Json:
    """`session::put-attachment`."""
    head = head_of(tx, request.session_id)
    data = _bytes(request.data, parts.limits.attachment_bytes)
    digest = hashlib.sha256(data).hexdigest()
    attachment_id = f"a_{parts.world.ids.uuid()}"
    row = (attachment_id, request.name, request.mime, len(data), digest, parts.now())
    tx.execute("INSERT INTO attachment_bytes(sha256, data) VALUES(?, ?) ON CONFLICT DO NOTHING", (digest, data))
    tx.execute(f"INSERT INTO attachments(session, {_COLUMNS}) VALUES(?, ?, ?, ?, ?, ?, ?)", (head.key, *row))
    block = {
        "type": "file",
        "attachment_id": attachment_id,
        "name": request.name,
        "mime": request.mime,
        "size": len(data),
    }
    return {"attachment": _attachment(row, head.session_id), "block": block}


def get_attachment(parts: Parts, reader: Reader, request: GetAttachmentRequest) -> Json:
    """`session::get-attachment`: null for an unknown session or attachment."""
    row = reader.execute(
        f"SELECT {_COLUMNS} FROM attachments WHERE attachment_id = ? "
        "AND session = (SELECT key FROM sessions WHERE session_id = ?)",
        (request.attachment_id, request.session_id),
    ).fetchone()
    if row is None:
        return None
    attachment = _attachment(row, request.session_id)
    data = None
    if request.include_data:
        stored = reader.execute(
            "SELECT data FROM attachment_bytes WHERE sha256 = ?", (attachment["sha256"],)
        ).fetchone()
        data = None if stored is None else base64.b64encode(stored[0]).decode()
    return {"attachment": attachment, "data": data}


def list_attachments(parts: Parts, reader: Reader, request: OfSession) -> Json:
    """`session::list-attachments`: empty for an unknown session."""
    row = reader.execute("SELECT key FROM sessions WHERE session_id = ?", (request.session_id,)).fetchone()
    return {"attachments": [] if row is None else attachments_of(reader, row[0], request.session_id)}


def delete_attachment(parts: Parts, tx: Tx, request: AttachmentRequest) -> Json:
    """`session::delete-attachment`: refused while a message, on whatever branch, or the draft refers to it."""
    head = head_of(tx, request.session_id)
    row = tx.execute(
        "SELECT sha256 FROM attachments WHERE session = ? AND attachment_id = ?", (head.key, request.attachment_id)
    ).fetchone()
    if row is None:
        return {"deleted": False}
    place = _reference(tx, head.key, request.attachment_id)
    if place is not None:
        raise CodedError(contract.ATTACHMENT_IN_USE, f"attachment {request.attachment_id!r} is referred to by {place}")
    tx.execute("DELETE FROM attachments WHERE session = ? AND attachment_id = ?", (head.key, request.attachment_id))
    drop_bytes(tx, [row[0]])
    return {"deleted": True}


def attachments_of(reader: Reader, session: int, session_id: str) -> list[dict[str, Any]]:
    """Attachments of a session, oldest first."""
    rows = reader.execute(
        f"SELECT {_COLUMNS} FROM attachments WHERE session = ? ORDER BY created_at, attachment_id", (session,)
    )
    return [_attachment(row, session_id) for row in rows]


def copy_attachments(tx: Tx, source: int, target: int, attachment_ids: Iterable[str]) -> None:
    """Give `target` the attachments of `source` that are named, under the same ids."""
    for attachment_id in attachment_ids:
        tx.execute(
            f"INSERT INTO attachments(session, {_COLUMNS}) SELECT ?, {_COLUMNS} FROM attachments "
            "WHERE session = ? AND attachment_id = ?",
            (target, source, attachment_id),
        )


def drop_bytes(tx: Tx, digests: Iterable[str]) -> None:
    """Forget bytes that no attachment refers to any more."""
    for digest in digests:
        tx.execute(
            "DELETE FROM attachment_bytes WHERE sha256 = ? "
            "AND NOT EXISTS (SELECT 1 FROM attachments WHERE attachments.sha256 = attachment_bytes.sha256)",
            (digest,),
        )


def referred_to(node: Any) -> Iterator[str]:
    """Ids of attachments in content blocks, nested ones too."""
    if isinstance(node, list):
        for item in cast("list[Any]", node):
            yield from referred_to(item)
    elif isinstance(node, dict):
        block = cast("dict[str, Any]", node)
        if isinstance(block.get("attachment_id"), str):
            yield block["attachment_id"]
        yield from referred_to(block.get("content"))


def _reference(tx: Tx, session: int, attachment_id: str) -> str | None:
    rows = tx.execute(
        "SELECT entry_id, body FROM entries WHERE session = ? AND role IS NOT NULL AND instr(body, ?)",
        (session, attachment_id),
    )
    for entry_id, body in rows:
        if attachment_id in referred_to(decode(body)):
            return f"entry {entry_id!r}"
    row = tx.execute("SELECT draft_attachment_ids FROM sessions WHERE key = ?", (session,)).fetchone()
    if row is not None and row[0] is not None and attachment_id in decode(row[0]):
        return "the draft"
    return None


def _bytes(data: str, limit: int) -> bytes:
    if len(data) // 4 * 3 > limit + 2:
        raise _too_large(len(data) // 4 * 3, limit)
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CodedError(contract.INVALID_REQUEST, f"`data`: not base64 ({error})") from None
    if len(decoded) > limit:
        raise _too_large(len(decoded), limit)
    return decoded


def _too_large(size: int, limit: int) -> CodedError:
    return CodedError(contract.ATTACHMENT_TOO_LARGE, f"`data`: {size} bytes, over the limit of {limit}")


def _attachment(row: tuple[Any, ...], session_id: str) -> dict[str, Any]:
    attachment_id, name, mime, size, digest, created_at = row
    return {
        "attachment_id": attachment_id,
        "session_id": session_id,
        "name": name,
        "mime": mime,
        "size": size,
        "sha256": digest,
        "created_at": created_at,
    }
