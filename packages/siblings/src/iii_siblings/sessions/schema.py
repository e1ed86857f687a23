"""Tables of the session store, and the JSON in their columns (siblings 3.11).

An entry's `position` is its branch times 2^24 plus its place in the branch. A branch is a chain without forks, so the
path to any entry is a few ranges of the primary key, one per branch it crosses: no walk along parents, no cache.
Bytes of attachments are stored once per digest, whatever number of sessions holds them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from iii_contracts.session import INVALID_REQUEST, NOT_FOUND
from iii_kit.encoding import MAX_DEPTH, nested_deeper_than
from iii_kit.errors import CodedError
from iii_kit.storage import Reader
from iii_store import Family

FAMILY = Family(
    "sessions",
    (
        (
            """CREATE TABLE sessions(
                key INTEGER PRIMARY KEY, session_id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
                description TEXT NOT NULL, status TEXT NOT NULL, status_reason TEXT, kind TEXT NOT NULL, metadata TEXT,
                forked_from TEXT, draft TEXT, draft_attachment_ids TEXT, active_leaf INTEGER,
                message_count INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL)""",
            "CREATE INDEX sessions_updated ON sessions(updated_at, session_id)",
            "CREATE INDEX sessions_created ON sessions(created_at, session_id)",
            """CREATE INDEX sessions_parent ON sessions(json_extract(metadata, '$.parent_session_id'))
                WHERE json_extract(metadata, '$.parent_session_id') IS NOT NULL""",
            "CREATE TABLE branches(branch INTEGER PRIMARY KEY, session INTEGER NOT NULL, parent INTEGER)",
            "CREATE INDEX branches_session ON branches(session)",
            """CREATE TABLE entries(
                position INTEGER PRIMARY KEY, session INTEGER NOT NULL, entry_id TEXT NOT NULL, role TEXT,
                timestamp INTEGER NOT NULL, revision INTEGER NOT NULL, origin TEXT, body TEXT NOT NULL)""",
            "CREATE UNIQUE INDEX entries_id ON entries(session, entry_id)",
            """CREATE TABLE attachments(
                session INTEGER NOT NULL, attachment_id TEXT NOT NULL, name TEXT NOT NULL, mime TEXT NOT NULL,
                size INTEGER NOT NULL, sha256 TEXT NOT NULL, created_at INTEGER NOT NULL,
                PRIMARY KEY(session, attachment_id)) WITHOUT ROWID""",
            "CREATE INDEX attachments_digest ON attachments(sha256)",
            "CREATE TABLE attachment_bytes(sha256 TEXT PRIMARY KEY, data BLOB NOT NULL)",
        ),
    ),
)

MAX_LEVELS = MAX_DEPTH - 6
"""Levels of a message, record, origin or metadata: every answer and event that has it in it can still be sent."""

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
decode = msgspec.json.Decoder().decode


def encode(value: Any) -> str:
    """JSON text of a value that came over the bus, where it was checked."""
    return _encode(value).decode()


def encoded(answer: Any) -> msgspec.Raw:
    """An answer of stored texts. Each was checked when it came, no less deep inside its request than here."""
    return msgspec.Raw(_encode(answer))


def bounded(name: str, value: Any) -> str:
    """`encode` of what readers get inside their answers. Raises `session/invalid_request` when it is too deep for one.

    Few brackets cannot be nested deeply; only many are looked at.
    """
    text = _encode(value).decode()
    if text.count("{") + text.count("[") > MAX_LEVELS and nested_deeper_than(value, MAX_LEVELS):
        raise CodedError(INVALID_REQUEST, f"`{name}`: nested deeper than {MAX_LEVELS} levels")
    return text


def same_json(one: Any, other: Any) -> bool:
    """Equality of JSON values: `1`, `1.0` and `true` differ, the order of keys does not count."""
    return type(one) is type(other) and _encode_sorted(one) == _encode_sorted(other)


def includes(metadata: str | None, wanted: dict[str, Any] | None) -> bool:
    """True when the session metadata (JSON text) has every wanted key with an equal value."""
    if not wanted:
        return True
    have: dict[str, Any] = decode(metadata) if metadata is not None else {}
    return all(key in have and same_json(have[key], value) for key, value in wanted.items())


class Head(msgspec.Struct, frozen=True):
    """What an operation on entries needs to know of their session."""

    key: int
    session_id: str
    active_leaf: int | None
    metadata: str | None


def head_of(reader: Reader, session_id: str) -> Head:
    """The head of a session. Raises `session/not_found`."""
    row = reader.execute(
        "SELECT key, session_id, active_leaf, metadata FROM sessions WHERE session_id = ?", (session_id,)
    ).fetchone()
    if row is None:
        raise unknown_session(session_id)
    return Head(*row)


def unknown_session(session_id: str) -> CodedError:
    """`session/not_found`."""
    return CodedError(NOT_FOUND, f"no session {session_id!r}")
