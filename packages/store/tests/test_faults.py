"""Faults of the disk: a clear error and no lie about durability (engineering 5, "store faults")."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from iii_store import Family, NewerDatabase, SqliteStore, StoreFailed
from iii_store.database import open_sqlite
from iii_testing.disk import Disk

NOTES = Family("notes", (("CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",),))


def add(text: str) -> Callable[[Any], int]:
    return lambda tx: tx.execute("INSERT INTO notes(text) VALUES(?)", (text,)).rowcount


def texts(store: SqliteStore) -> list[str]:
    return store.peek(lambda db: [row[0] for row in db.execute("SELECT text FROM notes ORDER BY id")])


def quick(path: Path, reading: bool) -> sqlite3.Connection:
    db = open_sqlite(path, reading)
    db.execute("PRAGMA busy_timeout=20")
    return db


@pytest.mark.requirement("store.fault.full")
async def test_a_full_disk_fails_the_writes_of_the_moment_and_nothing_else(tmp_path: Path) -> None:
    disk = Disk()
    store = SqliteStore(tmp_path / "notes.db", [NOTES], opener=disk.open)
    await store.write(add("before"))
    disk.break_down("write", apsw.SQLITE_FULL)
    results = await asyncio.gather(*(store.submit(add(str(n))) for n in range(3)), return_exceptions=True)
    for result in results:
        assert isinstance(result, StoreFailed)
        assert "disk is full" in result.message
        assert result.code == "storage_failed"
    disk.mend()
    await store.write(add("after"))
    assert texts(store) == ["before", "after"]
    store.close()


@pytest.mark.requirement("store.fault.full")
async def test_a_database_at_its_limit_is_a_full_disk(tmp_path: Path) -> None:
    def limited(path: Path, reading: bool) -> sqlite3.Connection:
        db = open_sqlite(path, reading)
        db.execute("PRAGMA max_page_count=40")
        return db

    store = SqliteStore(tmp_path / "notes.db", [NOTES], opener=limited)
    big, small = await asyncio.gather(
        store.submit(add("x" * 500_000)), store.submit(add("small")), return_exceptions=True
    )
    assert isinstance(big, StoreFailed)
    assert small == 1 or isinstance(small, StoreFailed)
    assert texts(store) == (["small"] if small == 1 else [])
    assert await store.write(add("again")) == 1
    store.close()


@pytest.mark.requirement("store.fault.sync")
async def test_after_a_failed_sync_the_store_takes_no_more_writes(tmp_path: Path) -> None:
    disk = Disk()
    store = SqliteStore(tmp_path / "notes.db", [NOTES], opener=disk.open)
    await store.write(add("safe"))
    disk.break_down("sync", apsw.SQLITE_IOERR_FSYNC)
    with pytest.raises(StoreFailed, match="disk failed"):
        await store.write(add("lost"))
    disk.mend()
    with pytest.raises(StoreFailed, match="takes no more writes until the process is started again"):
        await store.write(add("later"))
    assert texts(store)[:1] == ["safe"]
    store.close()
    again = SqliteStore(tmp_path / "notes.db", [NOTES])
    assert texts(again)[:1] == ["safe"]
    assert "later" not in texts(again)
    again.close()


@pytest.mark.requirement("store.fault.rollback")
async def test_a_job_cannot_write_outside_its_transaction_after_sqlite_rolled_it_back(tmp_path: Path) -> None:
    disk = Disk()
    store = SqliteStore(tmp_path / "notes.db", [NOTES], opener=disk.open)

    def stubborn(tx: Any) -> int:
        disk.break_down("write", apsw.SQLITE_FULL)
        written = 0
        for n in range(200):
            try:
                written += tx.execute("INSERT INTO notes(text) VALUES(?)", (f"{n}" + "x" * 50_000,)).rowcount
            except Exception:
                disk.mend()
        return written

    (written,) = await asyncio.gather(store.submit(stubborn), return_exceptions=True)
    disk.mend()
    assert len(texts(store)) == (written if isinstance(written, int) else 0)
    store.close()


@pytest.mark.requirement("store.fault.locked")
async def test_a_database_locked_by_another_process_says_so(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    store = SqliteStore(path, [NOTES], opener=quick)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailed, match="locked by another process"):
        await store.write(add("a"))
    other.execute("ROLLBACK")
    assert await store.write(add("a")) == 1
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailed, match="locked by another process"):
        SqliteStore(path, [NOTES], opener=quick)
    other.execute("ROLLBACK")
    other.close()
    store.close()


@pytest.mark.requirement("store.fault.read_only")
def test_a_read_only_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    SqliteStore(path, [NOTES]).close()

    def read_only(where: Path, reading: bool) -> sqlite3.Connection:
        return open_sqlite(where, True)

    with pytest.raises(StoreFailed, match=r"cannot be written: check the permissions"):
        SqliteStore(path, [NOTES], opener=read_only)


@pytest.mark.requirement("store.fault.open")
def test_a_path_that_cannot_be_opened_and_a_file_that_is_no_database_say_so(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="cannot be opened"):
        SqliteStore(tmp_path / "nowhere" / "notes.db", [NOTES])
    (tmp_path / "notes.db").write_bytes(b"not a database at all, but long enough to be read as one" * 40)
    with pytest.raises(StoreFailed, match="not a database of this software"):
        SqliteStore(tmp_path / "notes.db", [NOTES])


@pytest.mark.requirement("store.fault.missing_log")
async def test_a_missing_log_is_told_and_can_be_accepted(tmp_path: Path) -> None:
    path, copied = tmp_path / "notes.db", tmp_path / "copy"
    store = SqliteStore(path, [NOTES])
    await store.write(add("acknowledged"))
    copied.mkdir()
    (copied / "notes.db").write_bytes(path.read_bytes())
    with pytest.raises(StoreFailed, match=r"notes\.db-wal is missing"):
        SqliteStore(copied / "notes.db", [NOTES])
    (copied / "notes.db-wal").write_bytes((tmp_path / "notes.db-wal").read_bytes())
    whole = SqliteStore(copied / "notes.db", [NOTES])
    assert texts(whole) == ["acknowledged"]
    whole.crash()
    store.close()
    assert not (tmp_path / "notes.db-wal").exists()
    SqliteStore(path, [NOTES]).close()


@pytest.mark.requirement("store.fault.missing_log")
async def test_the_owner_may_go_on_without_the_log(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "notes.db", [NOTES])
    await store.write(add("gone"))
    (tmp_path / "copy").mkdir()
    path = tmp_path / "copy" / "notes.db"
    path.write_bytes((tmp_path / "notes.db").read_bytes())
    accepted = SqliteStore(path, [NOTES], accept_missing_log=True)
    assert texts(accepted) == []
    accepted.close()
    SqliteStore(path, [NOTES]).close()
    store.close()


@pytest.mark.requirement("store.fault.damaged")
async def test_a_truncated_database_is_damaged_and_stops_the_store(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    store = SqliteStore(path, [NOTES])
    for n in range(200):
        await store.write(add(f"{n} " + "x" * 2000))
    store.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2 // 4096 * 4096 + 100])
    with pytest.raises(StoreFailed, match="damaged"):
        opened = SqliteStore(path, [NOTES])
        try:
            for n in range(200):
                await opened.write(add(f"new {n}" + "y" * 2000))
            texts(opened)
        finally:
            opened.close()


@pytest.mark.requirement("store.schema.newer")
async def test_a_newer_database_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    two = Family("notes", (*NOTES.migrations, ("ALTER TABLE notes ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0",)))
    newer = SqliteStore(path, [two])
    await newer.write(add("kept"))
    newer.close()
    other = Family("other", (("CREATE TABLE other(a)",),))
    with pytest.raises(NewerDatabase, match="version 2 of the tables of 'notes', this version knows up to 1"):
        SqliteStore(path, [other, NOTES])
    again = SqliteStore(path, [two])
    assert again.peek(lambda db: db.execute("SELECT text, pinned FROM notes").fetchall()) == [("kept", 0)]
    assert again.peek(lambda db: db.execute("SELECT name FROM sqlite_master WHERE name = 'other'").fetchall()) == []
    again.close()


@pytest.mark.requirement("store.schema.forward")
async def test_migrations_run_once_each_and_a_failing_one_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    first = SqliteStore(path, [NOTES])
    await first.write(add("old"))
    first.close()
    wrong = Family("notes", (*NOTES.migrations, ("UPDATE notes SET text = 'changed'", "CREATE TABLE notes(a)")))
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        SqliteStore(path, [wrong])
    right = Family("notes", (*NOTES.migrations, ("UPDATE notes SET text = text || '!'",)))
    for _ in range(2):
        store = SqliteStore(path, [right])
        assert texts(store) == ["old!"]
        store.close()


class Failing:
    """A connection whose disk cannot be read where the statement says so; the transaction stays open."""

    def __init__(self, path: Path) -> None:
        self._db = open_sqlite(path, False)

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def execute(self, sql: str, args: Any = (), /) -> sqlite3.Cursor:
        if sql == "SELECT broken":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
            raise error
        return self._db.execute(sql, args)

    def close(self) -> None:
        self._db.close()


@pytest.mark.requirement("store.fault.sync")
@pytest.mark.parametrize("renamed", [True, False])
async def test_a_function_that_hides_a_fault_of_the_disk_does_not_keep_the_store_going(
    tmp_path: Path, renamed: bool
) -> None:
    def hiding(tx: Any) -> None:
        tx.execute("INSERT INTO notes(text) VALUES('half')")
        try:
            tx.execute("SELECT broken")
        except sqlite3.Error as error:
            if renamed:
                raise ValueError("storage") from error

    store = SqliteStore(
        tmp_path / "notes.db",
        [NOTES],
        opener=lambda path, reading: open_sqlite(path, True) if reading else Failing(path),
    )
    with pytest.raises(StoreFailed, match="disk failed"):
        await store.write(hiding)
    with pytest.raises(StoreFailed, match="takes no more writes until the process is started again"):
        await store.write(add("later"))
    assert texts(store) == []
    store.close()
