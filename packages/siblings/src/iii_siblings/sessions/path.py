"""Positions of entries, and the path from the root to an entry as ranges of positions (siblings 3.1)."""

from __future__ import annotations

from typing import NamedTuple

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


def extend(tx: Tx, session: int, parent: int | None) -> int:
    """The position of a new child of `parent`: next in its branch while that is free, else the start of a new one."""
    if parent is not None:
        following = parent + 1
        if following & _PLACE and entry_id_at(tx, following) is None:
            return following
    rows = tx.execute(
        "INSERT INTO branches(session, parent) VALUES(?, ?) RETURNING branch", (session, parent)
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
