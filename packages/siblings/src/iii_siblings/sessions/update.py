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
from iii_siblings.sessions.schema import bounded, decode, unknown_session

FINAL_FIELDS = ("usage", "provider", "stop_reason", "native_stop_reason", "error_kind", "error_message", "warnings")
"""What an update may change of an assistant message beside its content; all but `usage` are ours alone."""

LOOK = (
    "SELECT sessions.key, sessions.session_id, metadata, position, role, revision, origin, body "
    "FROM sessions LEFT JOIN entries ON entries.session = sessions.key AND entry_id = ? WHERE sessions.session_id = ?"
)

_WITH_DETAILS = ("function_result", "custom")


def update_message(parts: Parts, tx: Tx, request: UpdateMessageRequest) -> Json:
    """`session::update-message`: entry, kind, details, revision; then the new message."""
    row = tx.execute(LOOK, (request.entry_id, request.session_id)).fetchone()
    if row is None:
        raise unknown_session(request.session_id)
    key, session_id, metadata, position, role, revision, origin, body = row
    if position is None:
        raise CodedError(contract.ENTRY_NOT_FOUND, f"no entry {request.entry_id!r} in this session")
    if role is None:
        raise CodedError(contract.INVALID_ENTRY_KIND, f"entry {request.entry_id!r} is no message")
    if request.details is not None and role not in _WITH_DETAILS:
        raise CodedError(contract.DETAILS_NOT_SUPPORTED, f"`details`: a message of role `{role}` has none")
    if request.expected_revision is not None and request.expected_revision != revision:
        return {"updated": False, "revision": revision}
    message = _replaced(decode(body), request)
    revision += 1
    if request.origin is not None:
        origin = bounded("origin", request.origin)
    now = parts.world.clock.now_ms()
    tx.execute(
        "UPDATE entries SET body = ?, origin = ?, revision = ? WHERE position = ?",
        (body_text("content", message), origin, revision, position),
    )
    tx.execute("UPDATE sessions SET updated_at = ? WHERE key = ?", (now, key))
    subject = Subject(session_id, metadata, role)
    parts.events.tell(tx, contract.MESSAGE_UPDATED, subject, lambda: _told(request, message, revision, origin, now))
    return {"updated": True, "revision": revision}


def _replaced(message: dict[str, Any], request: UpdateMessageRequest) -> dict[str, Any]:
    message["content"] = request.content
    check_user_text(message, "content")
    if request.details is not None:
        message["details"] = request.details
    if message["role"] == "assistant":
        given = vars(request)
        for name in FINAL_FIELDS:
            if given[name] is not None:
                message[name] = given[name]
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
