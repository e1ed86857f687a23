"""Stored entries read along a path, and their form on the wire (siblings 3.2 TranscriptItem, 3.1 SessionEntry)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec
from msgspec import Raw

from iii_kit.storage import Reader
from iii_siblings.sessions.path import Span
from iii_siblings.sessions.schema import decode

ENTRY_COLUMNS = "position, entry_id, role, timestamp, revision, origin, body"


class EntryRow(msgspec.Struct, frozen=True):
    """An entry as stored, in the order of `ENTRY_COLUMNS`."""

    position: int
    entry_id: str
    role: str | None
    timestamp: int
    revision: int
    origin: str | None
    body: str


def rows_of(
    reader: Reader, path: Sequence[Span], *, where: str = "", args: Sequence[Any] = (), limit: int = -1
) -> Iterator[EntryRow]:
    """Entries of a path, oldest first; `where` continues the condition, `limit` counts what fits it."""
    for span in path:
        if limit == 0:
            return
        for row in reader.execute(
            f"SELECT {ENTRY_COLUMNS} FROM entries WHERE position BETWEEN ? AND ? {where} ORDER BY position LIMIT ?",
            (*span, *args, limit),
        ):
            limit -= 1
            yield EntryRow(*row)


def newest_first(reader: Reader, path: Sequence[Span]) -> Iterator[EntryRow]:
    """Entries of a path from its end to the root, read as far as the caller goes."""
    for span in reversed(path):
        for row in reader.execute(
            f"SELECT {ENTRY_COLUMNS} FROM entries WHERE position BETWEEN ? AND ? ORDER BY position DESC", span
        ):
            yield EntryRow(*row)


def item_of(row: EntryRow, *, image_data: bool) -> dict[str, Any]:
    """The entry as readers of a transcript get it."""
    item: dict[str, Any] = {"entry_id": row.entry_id}
    if row.role is None:
        item["custom"] = decode(row.body)
    else:
        item["message"] = message_of(row, image_data=image_data)
    if row.origin is not None:
        item["origin"] = decode(row.origin)
    return item


def stored_item(row: EntryRow, *, image_data: bool) -> dict[str, Any]:
    """`item_of` for an answer that is encoded here: what is stored goes in as the text that it is."""
    item: dict[str, Any] = {"entry_id": row.entry_id}
    if row.role is None:
        item["custom"] = Raw(row.body.encode())
    elif image_data or "attachment_id" not in row.body:
        item["message"] = Raw(row.body.encode())
    else:
        item["message"] = message_of(row, image_data=False)
    if row.origin is not None:
        item["origin"] = Raw(row.origin.encode())
    return item


def entry_of(row: EntryRow, parent_id: str | None, *, image_data: bool) -> dict[str, Any]:
    """The whole entry."""
    entry: dict[str, Any] = {
        "kind": "custom" if row.role is None else "message",
        "id": row.entry_id,
        "parent_id": parent_id,
        "timestamp": row.timestamp,
        "revision": row.revision,
    }
    if row.origin is not None:
        entry["origin"] = decode(row.origin)
    if row.role is None:
        return {**entry, **decode(row.body)}
    return {**entry, "message": message_of(row, image_data=image_data)}


def message_of(row: EntryRow, *, image_data: bool) -> dict[str, Any]:
    """The message; without `image_data`, images that are attachments lose their bytes."""
    message = decode(row.body)
    if not image_data and "attachment_id" in row.body:
        _blank_images(message["content"])
    return message


def _blank_images(blocks: list[Any]) -> None:
    for block in blocks:
        if block["type"] == "image" and block.get("attachment_id") is not None:
            block["data"] = ""
        nested = block.get("content")
        if block["type"] == "function_result" and isinstance(nested, list):
            _blank_images(cast("list[Any]", nested))
