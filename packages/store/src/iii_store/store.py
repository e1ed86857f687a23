"""`SqliteStore`: one database file, one writer, read-only connections for reads (design, engine spec 23).

WAL, `synchronous=FULL` (and `fullfsync` on macOS): an acknowledged write survives power loss.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, TypeVar

from iii_kit.bus import Call
from iii_kit.storage import Reader, Tx
from iii_store.schema import Family, migrate
from iii_store.writer import Job, Writer

T = TypeVar("T")


class SqliteStore:
    """A `Store` over one SQLite file."""

    def __init__(
        self, path: Path, families: Sequence[Family], *, synchronous: Literal["FULL", "NORMAL", "OFF"] = "FULL"
    ) -> None:
        self.path = path
        writing = _open(path)
        writing.execute("PRAGMA journal_mode=WAL")
        writing.execute(f"PRAGMA synchronous={synchronous}")
        writing.execute("PRAGMA fullfsync=1")
        try:
            migrate(writing, families)
        except BaseException:
            writing.close()
            raise
        self._peeking = _open_reading(path)
        self._reading: sqlite3.Connection | None = None
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="store-reader")
        self._writer = Writer(writing)
        self._writer.start()
        self._closed = False

    @property
    def commits(self) -> int:
        """Group commits since the start."""
        return self._writer.commits

    async def write(self, job: Callable[[Tx], T], *, after: Callable[[Sequence[Call]], None] | None = None) -> T:
        """Run `job` in the writer; returns after fsync."""
        return await self.submit(job, after=after)

    def submit(
        self, job: Callable[[Tx], Any], *, after: Callable[[Sequence[Call]], None] | None = None, lazy: bool = False
    ) -> asyncio.Future[Any]:
        """Hand `job` to the writer now, keeping the order of submission; the future is settled after fsync.

        A `lazy` job waits a few milliseconds for another write to share its commit.
        """
        if self._closed:
            raise RuntimeError("the store is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._writer.submit(Job(job, after, loop, future, lazy))
        return future

    async def read(self, job: Callable[[Reader], T]) -> T:
        """Run `job` on the reading thread, in one read transaction."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, job)

    def peek(self, job: Callable[[Reader], T]) -> T:
        """Run a bounded read at once on the loop's thread."""
        return job(self._peeking)

    def close(self) -> None:
        """Finish submitted writes and close every connection."""
        if self._closed:
            return
        self._closed = True
        self._writer.stop()
        self._readers.submit(self._close_reading).result()
        self._readers.shutdown()
        self._peeking.close()

    def _read(self, job: Callable[[Reader], T]) -> T:
        if self._reading is None:
            self._reading = _open_reading(self.path)
        self._reading.execute("BEGIN")
        try:
            return job(self._reading)
        finally:
            self._reading.execute("COMMIT")

    def _close_reading(self) -> None:
        if self._reading is not None:
            self._reading.close()


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512, timeout=5)


def _open_reading(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(
        f"file:{path}?mode=ro",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
        timeout=5,
    )
    db.execute("PRAGMA query_only=1")
    return db
