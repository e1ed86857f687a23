"""Crash points of a commit, and kill -9 of a process that writes (design: crash points; engineering 5)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iii_kit.errors import EpochEnded
from iii_store import Family, InlineStore, SqliteStore, StorePoint
from iii_testing.waiting import until
from iii_testing.world import Crash, Reach

NOTES = Family("notes", (("CREATE TABLE notes(n INTEGER PRIMARY KEY)",),))

CHILD = """
import asyncio, os, sys
from pathlib import Path
from iii_store import Family, SqliteStore
NOTES = Family("notes", (("CREATE TABLE notes(n INTEGER PRIMARY KEY)",),))
async def main(start):
    store = SqliteStore(Path(sys.argv[1]), [NOTES])
    async def writer(n):
        while True:
            await store.write(lambda tx: tx.execute("INSERT INTO notes VALUES(?)", (n,)))
            os.write(1, b"%d\\n" % n)
            n += 8
    await asyncio.gather(*(writer(start + n) for n in range(8)))
for kill in range(20):
    pid = os.fork()
    if pid == 0:
        os.write(1, b"pid %d\\n" % os.getpid())
        asyncio.run(main(kill * 1_000_000))
    os.waitpid(pid, 0)
    os.write(1, b"dead\\n")
"""


def add(n: int) -> Callable[[Any], int]:
    return lambda tx: tx.execute("INSERT INTO notes VALUES(?)", (n,)).rowcount


def numbers(store: SqliteStore | InlineStore) -> set[int]:
    return store.peek(lambda db: {row[0] for row in db.execute("SELECT n FROM notes")})


@pytest.mark.requirement("store.crash.points")
@pytest.mark.parametrize("kind", [SqliteStore, InlineStore])
@pytest.mark.parametrize("point", StorePoint)
async def test_a_crash_point_ends_the_store_and_answers_nobody(
    kind: type[SqliteStore], point: StorePoint, tmp_path: Path
) -> None:
    reach, crashes = Reach(), []
    store = kind(tmp_path / "notes.db", [NOTES], reach=reach, on_crash=crashes.append)
    await store.write(add(1))
    reach.crash_at(1, point)
    waiting = store.submit(add(2))
    await until(lambda: crashes)
    assert isinstance(crashes[0], Crash)
    assert not waiting.done()
    with pytest.raises(EpochEnded):
        await store.write(add(3))
    with pytest.raises(EpochEnded):
        store.peek(lambda db: db)
    again = kind(tmp_path / "notes.db", [NOTES])
    assert numbers(again) == ({1, 2} if point is StorePoint.GROUP_COMMITTED else {1})
    again.close()


@pytest.mark.requirement("store.crash.points")
@pytest.mark.parametrize("kind", [SqliteStore, InlineStore])
async def test_every_crash_point_is_reached_at_each_commit(kind: type[SqliteStore], tmp_path: Path) -> None:
    reach = Reach()
    store = kind(tmp_path / "notes.db", [NOTES], reach=reach)
    await store.write(add(1))
    assert reach.log == list(StorePoint)
    store.close()


@pytest.mark.requirement("store.durable.kill")
def test_no_acknowledged_write_is_lost_to_twenty_kills(tmp_path: Path) -> None:
    path, chance = tmp_path / "notes.db", random.Random(20)
    acknowledged: set[int] = set()
    with subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        for _ in range(20):
            pid = int(parent.stdout.readline().removeprefix("pid "))
            acknowledged.update(int(parent.stdout.readline()) for _ in range(chance.randint(1, 300)))
            os.kill(pid, signal.SIGKILL)
            while (line := parent.stdout.readline()) != "dead\n":
                acknowledged.add(int(line))
    store = SqliteStore(path, [NOTES])
    assert len(acknowledged) > 500
    assert acknowledged <= numbers(store)
    store.close()
