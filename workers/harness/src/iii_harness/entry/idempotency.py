"""Rows of `harness_idem`: one send per key (harness-loop 3.1 steps 3, 11, 15, 4).

A row is written before anything is delivered and carries the ids that every retry uses, so that a send cut off by a
crash is finished by the next one and never done twice.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, cast

from iii_harness.record import TurnRecord
from iii_kit.bus import Json

SCOPE = "harness_idem"


@dataclass(frozen=True, slots=True)
class IdemRow:
    """What one key stands for."""

    key: str
    session_id: str
    turn_id: str
    entry_id: str
    ts: int
    delivered: bool = False

    def live(self, now_ms: int, ttl_secs: int) -> bool:
        """True while the key is remembered."""
        return now_ms - self.ts <= ttl_secs * 1000


def parse_row(value: Json) -> IdemRow:
    """A stored row; raises when it is not one."""
    fields = cast("dict[str, Any]", value)
    return IdemRow(
        key=fields["key"],
        session_id=fields["session_id"],
        turn_id=fields["turn_id"],
        entry_id=fields["entry_id"],
        ts=int(fields["ts"]),
        delivered=fields.get("delivered") is True,
    )


def dump_row(row: IdemRow) -> dict[str, Any]:
    """The stored form of a row."""
    fields: dict[str, Any] = {
        "key": row.key,
        "session_id": row.session_id,
        "turn_id": row.turn_id,
        "entry_id": row.entry_id,
        "ts": row.ts,
    }
    return {**fields, "delivered": True} if row.delivered else fields


def entry_id_of(key: str) -> str:
    """The user entry of a key: safe characters, and a digest where the key had others, so that no two keys meet."""
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", key)
    if safe == key:
        return f"e_idem_{key}"
    return f"e_idem_{safe}_{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def taken_by(row: IdemRow, record: TurnRecord | None, path: list[dict[str, Any]]) -> str | None:
    """The turn that took the row's message, as the active path tells; None when nothing shows that one did.

    One did when a turn other than the row's brought it there, which only a running one does; when a generation has read
    it (it lies at or before the watermark); or when something of the turn that the row names follows it.
    """
    ids = [item["entry_id"] for item in path]
    if row.entry_id not in ids:
        return None
    at = ids.index(row.entry_id)
    own = _turn_of(path[at])
    if isinstance(own, str) and own != row.turn_id:
        return own
    watermark = None if record is None else record.watermark_entry_id
    read = watermark in ids and at <= ids.index(watermark)
    if not read and not any(_turn_of(item) == row.turn_id for item in path[at + 1 :]):
        return None
    return row.turn_id


def _turn_of(item: dict[str, Any]) -> Any:
    origin: Any = item.get("origin")
    return cast("dict[str, Any]", origin).get("turn_id") if isinstance(origin, dict) else None
