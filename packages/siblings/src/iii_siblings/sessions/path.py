"""Positions of entries, and the path from the root to an entry as ranges of positions (siblings 3.1)."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from iii_contracts.session import ENTRY_NOT_FOUND
from iii_kit.errors import CodedError
from iii_kit.storage import Reader, Tx

BRANCH_BITS = 24
_PLACE = (1 << BRANCH_BITS) - 1


class Span(NamedTuple):
    """Entries of one branch, both ends included."""

    first: int
    last: int


def find(reader: Reader, session: int, entry_id: str) -> int | None:
    """The position of an entry of the session."""
    row = reader.execute(
        "SELECT position FROM entries WHERE session = ? AND entry_id = ?", (session, entry_id)
    ).fetchone()
    return None if row is None else row[0]


def locate(reader: Reader, session: int, entry_id: str) -> int:
    """The position of an entry. Raises `session/entry_not_found`."""
    position = find(reader, session, entry_id)
    if position is None:
        raise CodedError(ENTRY_NOT_FOUND, f"no entry {entry_id!r} in this session")
    return position


def entry_id_at(reader: Reader, position: int | None) -> str | None:
    """The id of the entry at a position; None for no position."""
    if position is None:
        return None
    row = reader.execute("SELECT entry_id FROM entries WHERE position = ?", (position,)).fetchone()
    return None if row is None else row[0]


def parent_of(reader: Reader, position: int) -> int | None:
    """The position of the entry before this one on its path."""
    if position & _PLACE:
        return position - 1
    return _branch_parent(reader, position >> BRANCH_BITS)


class Place(msgspec.Struct, frozen=True):
    """Where a new entry goes: behind `parent`, in its branch unless the next position is taken."""

    parent: int | None
    parent_id: str | None
    is_taken: bool


def place_after(reader: Reader, session: int, parent_id: str) -> Place | None:
    """The place behind an entry; None when the session has no such entry."""
    row = reader.execute(
        "SELECT parent.position, following.position FROM entries AS parent "
        "LEFT JOIN entries AS following ON following.position = parent.position + 1 "
        "WHERE parent.session = ? AND parent.entry_id = ?",
        (session, parent_id),
    ).fetchone()
    return None if row is None else Place(row[0], parent_id, row[1] is not None)


def extend(tx: Tx, session: int, place: Place) -> int:
    """The position of a new entry at `place`: next in the branch of its parent, else the start of a branch."""
    if place.parent is not None and not place.is_taken and (place.parent + 1) & _PLACE:
        return place.parent + 1
    rows = tx.execute(
        "INSERT INTO branches(session, parent) VALUES(?, ?) RETURNING branch", (session, place.parent)
    ).fetchall()
    return rows[0][0] << BRANCH_BITS


def path_to(reader: Reader, leaf: int | None) -> list[Span]:
    """The path from the root to `leaf`, oldest span first."""
    spans: list[Span] = []
    while leaf is not None:
        branch = leaf >> BRANCH_BITS
        spans.append(Span(branch << BRANCH_BITS, leaf))
        leaf = _branch_parent(reader, branch)
    spans.reverse()
    return spans


def path_after(reader: Reader, leaf: int | None, after: int) -> list[Span] | None:
    """The part of the path to `leaf` that follows `after`, walked back no further; None when it is not on the path."""
    spans: list[Span] = []
    while leaf is not None:
        branch = leaf >> BRANCH_BITS
        first = branch << BRANCH_BITS
        if first <= after <= leaf:
            if after < leaf:
                spans.append(Span(after + 1, leaf))
            spans.reverse()
            return spans
        spans.append(Span(first, leaf))
        leaf = _branch_parent(reader, branch)
    return None


def is_on(path: list[Span], position: int) -> bool:
    """True when the entry is on the path."""
    return any(span.first <= position <= span.last for span in path)


def cut_before(path: list[Span], position: int) -> list[Span]:
    """The part of a path that comes before a position on it."""
    kept: list[Span] = []
    for span in path:
        if span.first <= position <= span.last:
            if span.first < position:
                kept.append(Span(span.first, position - 1))
            return kept
        kept.append(span)
    return kept


def _branch_parent(reader: Reader, branch: int) -> int | None:
    row = reader.execute("SELECT parent FROM branches WHERE branch = ?", (branch,)).fetchone()
    return None if row is None else row[0]
