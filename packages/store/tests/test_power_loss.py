"""Power loss: what was acknowledged is on disk, whatever the disk did with the rest (engineering 5).

The product's own writer runs over a file layer that knows what was synced. `synchronous=OFF` is the control: it must
lose writes, or the test would prove nothing.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from pathlib import Path
from typing import Any, Literal

import pytest

from iii_store import Family, SqliteStore
from iii_testing.disk import Disk

NOTES = Family("notes", (("CREATE TABLE notes(n INTEGER PRIMARY KEY, text TEXT NOT NULL)",),))


def add(n: int) -> Any:
    return lambda tx: tx.execute("INSERT INTO notes VALUES(?, ?)", (n, "x" * 3000)).rowcount


async def acknowledged_before_the_loss(
    path: Path, after: Path, synchronous: Literal["FULL", "OFF"], chance: random.Random | None, writes: int
) -> set[int]:
    """Write with sixteen writers at once and cut the power while they write; the acknowledged numbers."""
    disk = Disk()
    store = SqliteStore(path, [NOTES], opener=disk.open, synchronous=synchronous)
    acknowledged: set[int] = set()
    cut = asyncio.Event()

    async def writer(start: int) -> None:
        for n in range(start, writes * 10, 16):
            await store.write(add(n))
            if cut.is_set():
                return
            acknowledged.add(n)
            if len(acknowledged) == writes:
                disk.power_off(after, chance)
                cut.set()

    await asyncio.gather(*(writer(n) for n in range(16)))
    store.close()
    return acknowledged


def survivors(path: Path) -> set[int]:
    db = sqlite3.connect(path)
    try:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {n for (n,) in db.execute("SELECT n FROM notes")}
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return set()
    finally:
        db.close()


@pytest.mark.requirement("store.durable.power_loss", "store.write.durable")
@pytest.mark.parametrize("seed", [None, 1, 2, 3, 4])
async def test_no_acknowledged_write_is_lost_with_full_synchronisation(tmp_path: Path, seed: int | None) -> None:
    after = tmp_path / "after"
    after.mkdir()
    chance = None if seed is None else random.Random(seed)
    acknowledged = await acknowledged_before_the_loss(tmp_path / "notes.db", after, "FULL", chance, 400)
    assert len(acknowledged) == 400
    store = SqliteStore(after / "notes.db", [NOTES])
    await store.write(add(1_000_000))
    store.close()
    assert acknowledged <= survivors(after / "notes.db")


@pytest.mark.requirement("store.durable.power_loss")
async def test_the_control_without_synchronisation_loses_acknowledged_writes(tmp_path: Path) -> None:
    after = tmp_path / "after"
    after.mkdir()
    acknowledged = await acknowledged_before_the_loss(tmp_path / "notes.db", after, "OFF", None, 200)
    assert acknowledged - survivors(after / "notes.db")
