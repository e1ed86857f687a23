"""Copying a path into a new session (siblings 3.2 `session::fork`)."""

from __future__ import annotations

from typing import Any

from iii_contracts.session_calls import ForkRequest
from iii_contracts.session_model import LINKAGE_KEYS
from iii_kit.bus import Json
from iii_kit.storage import Tx
from iii_siblings.sessions.append import INSERT
from iii_siblings.sessions.attachments import copy_attachments, referred_to
from iii_siblings.sessions.items import rows_of
from iii_siblings.sessions.meta import Birth, Row, insert, known_row, meta_of
from iii_siblings.sessions.parts import Parts
from iii_siblings.sessions.path import Place, extend, locate, path_to
from iii_siblings.sessions.schema import decode, encode

COMPACTION = "compaction"
"""Custom type whose data names an entry of the same path, which a fork has under another id."""


def fork(parts: Parts, tx: Tx, request: ForkRequest) -> Json:
    """`session::fork`: fresh entry ids, revision 0, original times; metadata without the ties to a parent."""
    source = known_row(tx, request.session_id)
    last = locate(tx, source.key, request.entry_id)
    birth = Birth(
        f"s_{parts.world.ids.uuid()}",
        source.title if request.title is None else request.title,
        source.description,
        source.kind,
        _untied(source.metadata),
        source.session_id,
    )
    target = insert(parts, tx, birth)
    messages = _copy(parts, tx, source, target, last)
    meta = meta_of(tx, target._replace(message_count=messages))
    return {"session_id": birth.session_id, "meta": meta}


def _copy(parts: Parts, tx: Tx, source: Row, target: Row, last: int) -> int:
    place = Place(None, None, is_taken=False)
    messages = 0
    new_ids: dict[str, str] = {}
    attachment_ids: dict[str, None] = {}
    for row in rows_of(tx, path_to(tx, last)):
        new_ids[row.entry_id] = entry_id = f"e_{parts.world.ids.uuid()}"
        body = row.body
        if row.role is None:
            body = _renamed(body, new_ids)
        else:
            messages += 1
            if "attachment_id" in body:
                attachment_ids.update(dict.fromkeys(referred_to(decode(body))))
        position = extend(tx, target.key, place)
        place = Place(position, entry_id, is_taken=False)
        tx.execute(INSERT, (position, target.key, entry_id, row.role, row.timestamp, row.origin, body))
    copy_attachments(tx, source.key, target.key, attachment_ids)
    tx.execute(
        "UPDATE sessions SET active_leaf = ?, message_count = ? WHERE key = ?", (place.parent, messages, target.key)
    )
    return messages


def _renamed(body: str, new_ids: dict[str, str]) -> str:
    custom: dict[str, Any] = decode(body)
    data = custom["data"]
    if custom["custom_type"] != COMPACTION or not isinstance(data, dict):
        return body
    kept = data.get("tail_start_entry_id")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if kept not in new_ids:
        return body
    return encode({**custom, "data": {**data, "tail_start_entry_id": new_ids[kept]}})


def _untied(metadata: str | None) -> str | None:
    if metadata is None:
        return None
    return encode({key: value for key, value in decode(metadata).items() if key not in LINKAGE_KEYS})
