"""Opening the database file: pragmas, the checks before the first write, and the mark of a clean end.

WAL, `synchronous=FULL` (and `fullfsync` on macOS): a committed transaction survives power loss. While a store is open
its main file says so; when it says so and the write-ahead log is gone, acknowledged writes are gone with it, and
that is told instead of passed over.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from iii_kit.storage import Cursor, Reader
from iii_store.faults import READONLY, StoreFailed, fault, result_code
from iii_store.schema import Family, migrate

T = TypeVar("T")
Synchronous = Literal["FULL", "NORMAL", "OFF"]

WAL_LIMIT = 64 * 1024 * 1024
"""Bytes of the write-ahead log above which it is cut back as soon as no reader needs it."""

_BUSY_SECONDS = 5.0


class Database(Protocol):
    """What the store needs of a connection: `sqlite3.Connection` has it."""

    @property
    def in_transaction(self) -> bool:
        """True between BEGIN and its end."""
        ...

    def execute(self, sql: str, args: Sequence[Any] = ..., /) -> Cursor:
        """Run one statement."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


Opener = Callable[[Path, bool], Database]
"""Opens the file; the second argument asks for a connection that only reads."""


def open_sqlite(path: Path, reading: bool) -> sqlite3.Connection:
    """A connection of the standard library, in autocommit mode, usable from the thread that owns it at the time."""
    where = f"{path.absolute().as_uri()}?mode={'ro' if reading else 'rwc'}"
    return sqlite3.connect(
        where, uri=True, isolation_level=None, check_same_thread=False, cached_statements=512, timeout=_BUSY_SECONDS
    )


def open_for_writing(
    opener: Opener, path: Path, families: Sequence[Family], synchronous: Synchronous, accept_missing_log: bool
) -> Database:
    """The writing connection of a checked and migrated database. Raises `StoreFailed` or `NewerDatabase`."""
    log_found = _log(path).exists()
    db: Database | None = None
    try:
        db = opener(path, False)
        if not log_found and not accept_missing_log and _is_marked_open(db):
            raise StoreFailed(
                f"database {path}: its write-ahead log {_log(path).name} is missing, and with it the writes since it "
                "was last emptied. Put the file back beside it. If there is none (another program that opened the "
                "database since the crash may have emptied and removed it), open the store with accept_missing_log"
            )
        _prepare(db, path, synchronous)
        migrate(db, families)
        _mark(db, open_=True)
    except BaseException as error:
        if db is not None:
            db.close()
        found = fault(path, error)
        if found is not None:
            raise found from error
        raise
    return db


def open_for_reading(opener: Opener, path: Path) -> Database:
    """A connection that sees committed data and changes nothing."""
    db = opener(path, True)
    db.execute("PRAGMA query_only=1")
    return db


def in_snapshot(db: Database, path: Path, job: Callable[[Reader], T]) -> T:
    """The result of a reading job over one view of committed data."""
    try:
        db.execute("BEGIN")
        try:
            return job(db)
        finally:
            if db.in_transaction:
                db.execute("COMMIT")
    except Exception as error:
        if result_code(error) == READONLY:
            raise StoreFailed("a read cannot change the database: write in a transaction") from error
        found = fault(path, error)
        if found is not None:
            raise found from error
        raise


def close_cleanly(db: Database) -> None:
    """Say in the main file that nothing is missing, and close; what was begun and not committed is undone.

    The last connection that closes moves the log into the main file and deletes it: the mark must be gone before.
    """
    try:
        if db.in_transaction:
            db.execute("ROLLBACK")
        _mark(db, open_=False)
    finally:
        db.close()


def cut_log(db: Database, path: Path) -> bool:
    """Move the log into the main file and cut it when it has outgrown its limit; False when a reader is in the way."""
    try:
        if _log(path).stat().st_size <= WAL_LIMIT:
            return True
    except FileNotFoundError:
        return True
    db.execute("PRAGMA busy_timeout=50")
    try:
        busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        db.execute(f"PRAGMA busy_timeout={int(_BUSY_SECONDS * 1000)}")
    return busy is not None and busy[0] == 0


def _log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _prepare(db: Database, path: Path, synchronous: Synchronous) -> None:
    mode = db.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode is None or mode[0] != "wal":
        raise StoreFailed(
            f"database {path}: its file system allows no write-ahead log (journal mode {mode and mode[0]}): use a data "
            "directory on a local disk"
        )
    db.execute(f"PRAGMA synchronous={synchronous}")
    db.execute("PRAGMA fullfsync=1")
    db.execute("PRAGMA checkpoint_fullfsync=1")
    db.execute(f"PRAGMA journal_size_limit={WAL_LIMIT}")
    db.execute("PRAGMA temp_store=MEMORY")


def _is_marked_open(db: Database) -> bool:
    found = db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'store_open'").fetchone()
    return found is not None and db.execute("SELECT 1 FROM store_open").fetchone() is not None


def _mark(db: Database, *, open_: bool) -> None:
    """Write the mark and bring it into the main file, where it can be read without the log."""
    if open_:
        db.execute("CREATE TABLE IF NOT EXISTS store_open(id INTEGER PRIMARY KEY CHECK (id = 1))")
        db.execute("INSERT OR IGNORE INTO store_open VALUES(1)")
    else:
        db.execute("DELETE FROM store_open")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
