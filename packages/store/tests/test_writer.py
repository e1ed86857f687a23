"""Group commit: what a write may rely on (design: one writer, an acknowledged write is on disk)."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from iii_kit.bus import Call
from iii_kit.storage import Tx
from iii_store import Family, InlineStore, SqliteStore, StoreFailed
from iii_store.database import open_sqlite

NOTES = Family("notes", (("CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",),))


@pytest.fixture(params=[SqliteStore, InlineStore])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqliteStore | InlineStore]:
    opened = request.param(tmp_path / "notes.db", [NOTES])
    yield opened
    opened.close()


def add(text: str) -> Any:
    return lambda tx: tx.execute("INSERT INTO notes(text) VALUES(?)", (text,)).rowcount


def texts(store: SqliteStore | InlineStore) -> list[str]:
    return store.peek(lambda db: [row[0] for row in db.execute("SELECT text FROM notes ORDER BY id")])


@pytest.mark.requirement("store.write.isolated")
async def test_a_failing_job_spoils_neither_its_neighbours_nor_its_savepoint(store: SqliteStore | InlineStore) -> None:
    def nested(tx: Tx) -> None:
        tx.execute("INSERT INTO notes(text) VALUES('inside')")
        tx.execute("SAVEPOINT inner_one")
        tx.execute("INSERT INTO notes(text) VALUES('deeper')")
        raise ValueError("refused")

    def unreadable(tx: Tx) -> None:
        tx.execute("INSERT INTO notes(text) VALUES('before')")
        tx.execute("SELECT * FROM nowhere")

    jobs = [store.submit(job) for job in (add("a"), nested, unreadable, add("b"), add("a"), add("c"))]
    results = await asyncio.gather(*jobs, return_exceptions=True)
    assert [type(result).__name__ for result in results] == [
        "int", "ValueError", "OperationalError", "int", "IntegrityError", "int",
    ]  # fmt: skip
    assert texts(store) == ["a", "b", "c"]


@pytest.mark.requirement("store.write.isolated")
async def test_a_job_that_fails_alone_leaves_nothing(store: SqliteStore | InlineStore) -> None:
    def half(tx: Tx) -> None:
        tx.execute("INSERT INTO notes(text) VALUES('half')")
        raise KeyError("gone")

    with pytest.raises(KeyError):
        await store.write(half)
    await store.write(add("whole"))
    assert texts(store) == ["whole"]


@pytest.mark.requirement("store.write.grouped")
async def test_writes_that_wait_together_share_commits_in_order(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "notes.db", [NOTES])
    started, gate = threading.Event(), threading.Event()
    first = store.submit(lambda tx: (started.set(), gate.wait(10)), long=True)
    await asyncio.to_thread(started.wait, 10)
    rest = [store.submit(add(f"{n:03}")) for n in range(100)]
    gate.set()
    await asyncio.gather(first, *rest)
    assert store.commits == 2
    assert texts(store) == [f"{n:03}" for n in range(100)]
    store.close()


@pytest.mark.requirement("store.write.off_loop")
async def test_a_write_that_waits_for_another_process_or_is_long_keeps_off_the_loop(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "notes.db", [NOTES])
    other = sqlite3.connect(tmp_path / "notes.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    threads: list[int] = []

    def where(tx: Tx) -> None:
        threads.append(threading.get_ident())

    held = store.submit(where)
    for _ in range(100):
        await asyncio.sleep(0)
    assert not held.done()
    other.execute("ROLLBACK")
    other.close()
    await held
    await store.submit(where, long=True)
    await store.submit(where)
    loop = threading.get_ident()
    assert [ident == loop for ident in threads] == [False, False, True]
    store.close()


@pytest.mark.requirement("store.write.after_commit")
async def test_calls_and_hooks_of_a_job_leave_after_its_commit_and_never_when_it_failed(
    store: SqliteStore | InlineStore,
) -> None:
    heard: list[str] = []

    def job(name: str, fails: bool) -> Any:
        def run(tx: Tx) -> None:
            tx.execute("INSERT INTO notes(text) VALUES(?)", (name,))
            tx.on_commit(lambda: heard.append(f"hook {name} {name in texts(store)}"))
            tx.after_commit(Call(f"demo::{name}", {}))
            if fails:
                raise ValueError(name)

        return run

    def after(calls: Sequence[Call]) -> None:
        heard.extend(call.fn for call in calls)

    names = [("a", False), ("b", True), ("c", False)]
    await asyncio.gather(
        *(store.submit(job(name, fails), after=after) for name, fails in names), return_exceptions=True
    )
    assert heard == ["hook a True", "demo::a", "hook c True", "demo::c"]


@pytest.mark.requirement("store.write.after_commit")
async def test_a_listener_that_raises_does_not_keep_others_from_their_results(
    store: SqliteStore | InlineStore,
) -> None:
    def broken(tx: Tx) -> str:
        tx.on_commit(lambda: 1 // 0)
        return "written"

    assert await asyncio.gather(store.submit(broken), store.submit(add("a"))) == ["written", 1]


@pytest.mark.requirement("store.write.lazy")
async def test_a_lazy_write_shares_the_commit_of_the_next_one(store: SqliteStore | InlineStore) -> None:
    before = store.commits
    lazy = store.submit(add("lazy"), lazy=True)
    await store.write(add("eager"))
    await lazy
    assert store.commits == before + 1
    await store.submit(add("alone"), lazy=True)
    assert texts(store) == ["lazy", "eager", "alone"]


@pytest.mark.requirement("store.tx.bounded")
async def test_a_transaction_cannot_be_used_after_its_function(store: SqliteStore | InlineStore) -> None:
    kept: list[Tx] = []
    await store.write(kept.append)
    with pytest.raises(StoreFailed, match="transaction is over"):
        kept[0].execute("INSERT INTO notes(text) VALUES('late')")


@pytest.mark.requirement("store.read.committed")
async def test_reads_see_committed_data_and_cannot_write(store: SqliteStore | InlineStore) -> None:
    await store.write(add("a"))
    assert await store.read(lambda db: db.execute("SELECT count(*) FROM notes").fetchone()) == (1,)
    with pytest.raises(StoreFailed, match="a read cannot change"):
        store.peek(lambda db: db.execute("INSERT INTO notes(text) VALUES('x')"))
    with pytest.raises(StoreFailed, match="a read cannot change"):
        await store.read(lambda db: db.execute("DELETE FROM notes"))


@pytest.mark.requirement("store.read.committed")
async def test_a_read_is_one_view_whatever_is_committed_meanwhile(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "notes.db", [NOTES])
    looked, written = threading.Event(), threading.Event()

    def twice(db: Any) -> tuple[int, int]:
        first = db.execute("SELECT count(*) FROM notes").fetchone()[0]
        looked.set()
        written.wait(10)
        return first, db.execute("SELECT count(*) FROM notes").fetchone()[0]

    reading = asyncio.ensure_future(store.read(twice))
    await asyncio.to_thread(looked.wait, 10)
    await store.write(add("a"))
    written.set()
    assert await reading == (0, 0)
    store.close()


@pytest.mark.requirement("store.close.finishes")
async def test_close_under_load_finishes_what_was_submitted_and_refuses_the_rest(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "notes.db", [NOTES])
    jobs = [store.submit(add(str(n))) for n in range(2000)]
    store.close()
    store.close()
    assert await asyncio.gather(*jobs) == [1] * 2000
    for use in (lambda: store.submit(add("late")), lambda: store.peek(lambda _: 0)):
        with pytest.raises(StoreFailed, match="closed"):
            use()
    again = SqliteStore(tmp_path / "notes.db", [NOTES])
    assert len(texts(again)) == 2000
    again.close()


@pytest.mark.requirement("store.log.bounded")
async def test_the_log_is_cut_back_once_its_reader_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iii_store.database.WAL_LIMIT", 200_000)
    monkeypatch.setattr("iii_store.group._CUT_EVERY", 8)
    store = SqliteStore(tmp_path / "notes.db", [NOTES])
    log = tmp_path / "notes.db-wal"
    release = threading.Event()
    holding = asyncio.ensure_future(
        store.read(lambda db: (db.execute("SELECT count(*) FROM notes").fetchone(), release.wait(20)))
    )
    for n in range(40):
        await store.write(add(f"{n} " + "x" * 40_000))
    assert log.stat().st_size > 1_000_000
    release.set()
    await holding
    for n in range(16):
        await store.write(add(f"more {n}"))
    assert log.stat().st_size < 400_000
    store.close()
    assert not log.exists()


@pytest.mark.requirement("store.write.off_loop")
async def test_after_the_log_was_cut_a_write_waits_for_another_process_off_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iii_store.database.WAL_LIMIT", 0)
    monkeypatch.setattr("iii_store.group._CUT_EVERY", 1)
    store = SqliteStore(tmp_path / "notes.db", [NOTES])
    await store.write(add("cut"))
    other = sqlite3.connect(tmp_path / "notes.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    threads: list[int] = []
    began = time.monotonic()
    held = store.submit(lambda _: threads.append(threading.get_ident()))
    for _ in range(100):
        await asyncio.sleep(0)
    assert time.monotonic() - began < 2.5, "the loop has waited for the lock"
    assert not held.done()
    other.execute("ROLLBACK")
    other.close()
    await held
    assert threads != [threading.get_ident()]
    store.close()


class Interrupted:
    """A connection beside which another process takes the lock as soon as something was undone, and soon lets go."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = open_sqlite(path, False)
        self.interrupted = False

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def execute(self, sql: str, args: Sequence[Any] = (), /) -> sqlite3.Cursor:
        done = self._db.execute(sql, args)
        if sql == "ROLLBACK" and not self.interrupted:
            self.interrupted = True
            other = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            other.execute("BEGIN IMMEDIATE")
            threading.Timer(0.05, other.execute, ["ROLLBACK"]).start()
        return done

    def close(self) -> None:
        self._db.close()


@pytest.mark.requirement("store.write.isolated")
async def test_another_process_between_the_two_runs_of_a_group_is_waited_for(tmp_path: Path) -> None:
    def failing(_: Tx) -> None:
        raise ValueError("refused")

    store = SqliteStore(
        tmp_path / "notes.db",
        [NOTES],
        opener=lambda path, reading: open_sqlite(path, True) if reading else Interrupted(path),
    )
    jobs = [store.submit(job) for job in (add("a"), failing, add("b"))]
    results = await asyncio.gather(*jobs, return_exceptions=True)
    assert [type(result).__name__ for result in results] == ["int", "ValueError", "int"]
    assert texts(store) == ["a", "b"]
    store.close()


@pytest.mark.requirement("store.write.isolated")
async def test_a_long_write_does_not_run_twice_because_a_neighbour_failed(tmp_path: Path) -> None:
    def failing(_: Tx) -> None:
        raise ValueError("refused")

    runs: list[str] = []
    store = SqliteStore(tmp_path / "notes.db", [NOTES])
    jobs = [store.submit(lambda _: runs.append("long"), long=True), store.submit(failing), store.submit(add("a"))]
    await asyncio.gather(*jobs, return_exceptions=True)
    assert runs == ["long"]
    assert texts(store) == ["a"]
    store.close()


@pytest.mark.requirement("store.write.after_commit")
async def test_neither_a_listener_that_raises_nor_a_stop_iteration_leaves_a_neighbour_waiting(
    store: SqliteStore | InlineStore,
) -> None:
    def told(_: Any, __: BaseException | None) -> None:
        raise ValueError("listener")

    def exhausted(_: Tx) -> None:
        next(iter(()))

    jobs = [store.submit(add("a"), told=told), store.submit(exhausted), store.submit(add("b"))]
    results = await asyncio.wait_for(asyncio.gather(*jobs, return_exceptions=True), 10)
    assert [type(result).__name__ for result in results] == ["int", "RuntimeError", "int"]
