"""Replacing the content of a message (siblings 3.5)."""

from __future__ import annotations

from typing import Any

from iii_contracts import session as contract
from iii_contracts.session_calls import UpdateMessageRequest
from iii_kit.bus import Json
from iii_kit.errors import CodedError
from iii_kit.storage import Tx
from iii_siblings.sessions.append import body_text, check_user_text
from iii_siblings.sessions.events import Subject
from iii_siblings.sessions.parts import Parts
from iii_siblings.sessions.schema import decode, encode, head_of

FINAL_FIELDS = ("usage", "provider", "stop_reason", "native_stop_reason", "error_kind", "error_message", "warnings")
"""What an update may change of an assistant message beside its content; all but `usage` are ours alone."""

_WITH_DETAILS = ("function_result", "custom")


def update_message(parts: Parts, tx: Tx, request: UpdateMessageRequest) -> Json:
    """`session::update-message`: entry, kind, details, revision; then the new message."""
    head = head_of(tx, request.session_id)
    row = tx.execute(
        "SELECT position, role, revision, origin, body FROM entries WHERE session = ? AND entry_id = ?",
        (head.key, request.entry_id),
    ).fetchone()
    if row is None:
        raise CodedError(contract.ENTRY_NOT_FOUND, f"no entry {request.entry_id!r} in this session")
    position, role, revision, origin, body = row
    if role is None:
        raise CodedError(contract.INVALID_ENTRY_KIND, f"entry {request.entry_id!r} is no message")
    if request.details is not None and role not in _WITH_DETAILS:
        raise CodedError(contract.DETAILS_NOT_SUPPORTED, f"`details`: a message of role `{role}` has none")
    if request.expected_revision is not None and request.expected_revision != revision:
        return {"updated": False, "revision": revision}
    message = _replaced(decode(body), request)
    revision += 1
    if request.origin is not None:
        origin = encode(request.origin)
    now = parts.now()
    tx.execute(
        "UPDATE entries SET body = ?, origin = ?, revision = ? WHERE position = ?",
        (body_text("content", message), origin, revision, position),
    )
    tx.execute("UPDATE sessions SET updated_at = ? WHERE key = ?", (now, head.key))
    subject = Subject(head.session_id, head.metadata, role)
    parts.events.tell(tx, contract.MESSAGE_UPDATED, subject, lambda: _told(request, message, revision, origin, now))
    return {"updated": True, "revision": revision}


def _replaced(message: dict[str, Any], request: UpdateMessageRequest) -> dict[str, Any]:
    message["content"] = request.content
    check_user_text(message, "content")
    if request.details is not None:
        message["details"] = request.details
    if message["role"] == "assistant":
        for name in FINAL_FIELDS:
            value = getattr(request, name)
            if value is not None:
                message[name] = value
    return message


def _told(
    request: UpdateMessageRequest, message: dict[str, Any], revision: int, origin: str | None, now: int
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "session_id": request.session_id,
        "entry_id": request.entry_id,
        "message": message,
        "revision": revision,
        "timestamp": now,
    }
    if origin is not None:
        told["origin"] = decode(origin)
    return told
