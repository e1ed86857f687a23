"""`SqliteStore`: one database file, one writer, read-only connections for reads (design, engine spec 23)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from iii_kit.bus import Call
from iii_kit.errors import EpochEnded
from iii_kit.logs import logger
from iii_kit.storage import Reader, Tx
from iii_kit.world import Point, pass_by
from iii_store.database import (
    Database,
    Opener,
    Synchronous,
    close_cleanly,
    in_snapshot,
    open_for_reading,
    open_for_writing,
    open_sqlite,
)
from iii_store.faults import StoreFailed
from iii_store.group import Committer, Job
from iii_store.schema import Family
from iii_store.writer import Writer

T = TypeVar("T")

log = logger(__name__)


class SqliteStore:
    """A `Store` over one SQLite file. Made and used on one event loop.

    `reach` is told of the crash points of a commit; `on_crash` hears on the loop when one of them raised, after which
    every use raises `EpochEnded` and nothing that waits is answered. `opener` and `synchronous` are for tests.
    """

    def __init__(
        self,
        path: Path,
        families: Sequence[Family],
        *,
        synchronous: Synchronous = "FULL",
        reach: Callable[[Point], None] = pass_by,
        on_crash: Callable[[BaseException], None] | None = None,
        accept_missing_log: bool = False,
        opener: Opener = open_sqlite,
    ) -> None:
        self.path = path
        self._opener = opener
        self._on_crash = on_crash
        self._writing = open_for_writing(opener, path, families, synchronous, accept_missing_log)
        self._peeking = open_for_reading(opener, path)
        self._reading: Database | None = None
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="store-reader")
        self._committer = Committer(self._writing, path, reach)
        self._writer = Writer(self._committer, self._end_writing, self._died)
        self._over: Exception | None = None

    @property
    def commits(self) -> int:
        """Group commits since the start."""
        return self._committer.commits

    async def write(self, job: Callable[[Tx], T], *, after: Callable[[Sequence[Call]], None] | None = None) -> T:
        """Run `job` in the writer; returns after fsync."""
        return await self.submit(job, after=after)

    def submit(
        self,
        job: Callable[[Tx], Any],
        *,
        after: Callable[[Sequence[Call]], None] | None = None,
        lazy: bool = False,
        long: bool = False,
        told: Callable[[Any, BaseException | None], None] | None = None,
    ) -> asyncio.Future[Any]:
        """Hand `job` to the writer now, keeping the order of submission; the future is settled after fsync.

        A `lazy` job waits a few milliseconds for another write to share its commit; a `long` one runs off the loop.
        """
        if self._over is not None:
            raise self._over
        work = Job(job, after, asyncio.get_running_loop(), lazy, long, told)
        self._writer.submit(work)
        return work.future

    async def read(self, job: Callable[[Reader], T]) -> T:
        """Run `job` on the reading thread, in one read transaction."""
        if self._over is not None:
            raise self._over
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, job)

    def peek(self, job: Callable[[Reader], T]) -> T:
        """Run a bounded read at once on the loop's thread, in one read transaction."""
        if self._over is not None:
            raise self._over
        return in_snapshot(self._peeking, self.path, job)

    def close(self) -> None:
        """Finish submitted writes and close every connection. Again is harmless."""
        if self._over is not None:
            return
        self._over = StoreFailed("the store is closed")
        self._close_readers()
        self._writer.stop()

    def crash(self) -> None:
        """End as a killed process does: what is not committed never is, and nobody hears of what is."""
        if self._over is None:
            self._over = EpochEnded()
            self._close_readers()
            self._writer.abandon()

    def _died(self, cause: BaseException) -> None:
        self.crash()
        if self._on_crash is not None:
            self._on_crash(cause)

    def _end_writing(self) -> None:
        """On the writer's thread, at its end."""
        try:
            close_cleanly(self._writing)
        except Exception as error:
            log.error("store_not_closed", message=str(error))

    def _close_readers(self) -> None:
        self._readers.submit(self._close_reading).result()
        self._readers.shutdown()
        self._peeking.close()

    def _read(self, job: Callable[[Reader], T]) -> T:
        if self._reading is None:
            self._reading = open_for_reading(self._opener, self.path)
        return in_snapshot(self._reading, self.path, job)

    def _close_reading(self) -> None:
        if self._reading is not None:
            self._reading.close()
