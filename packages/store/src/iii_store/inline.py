"""`InlineStore`: the store without threads, for simulations (design, "time, ids and randomness are injected").

Same protocol, same statements, same groups of savepoints; a write is committed before `submit` returns and its caller
hears of it at the next turn of the loop. Lazy writes wait for the next other write, and are lost when a crash comes
first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from iii_kit.bus import Call
from iii_kit.errors import EpochEnded
from iii_kit.storage import Reader, Tx
from iii_kit.world import Point, pass_by
from iii_store.database import (
    Opener,
    Synchronous,
    close_cleanly,
    in_snapshot,
    open_for_reading,
    open_for_writing,
    open_sqlite,
)
from iii_store.faults import StoreFailed
from iii_store.group import Committer, Dead, Job, settle
from iii_store.schema import Family
from iii_store.writer import LAZY_WAIT

T = TypeVar("T")


class InlineStore:
    """A `Store` whose every step happens on the loop, in a fixed order."""

    def __init__(
        self,
        path: Path,
        families: Sequence[Family],
        *,
        synchronous: Synchronous = "OFF",
        reach: Callable[[Point], None] = pass_by,
        on_crash: Callable[[BaseException], None] | None = None,
        opener: Opener = open_sqlite,
    ) -> None:
        self.path = path
        self._db = open_for_writing(opener, path, families, synchronous, accept_missing_log=False)
        self._reading = open_for_reading(opener, path)
        self._committer = Committer(self._db, path, reach)
        self._on_crash = on_crash
        self._lazy: list[Job] = []
        self._over: Exception | None = None

    @property
    def commits(self) -> int:
        """Group commits since the start."""
        return self._committer.commits

    async def write(self, job: Callable[[Tx], T], *, after: Callable[[Sequence[Call]], None] | None = None) -> T:
        """Run and commit `job`."""
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
        """Commit `job`, and the lazy ones before it, now; the future is settled at the next turn of the loop."""
        if self._over is not None:
            raise self._over
        loop = asyncio.get_running_loop()
        work = Job(job, after, loop, lazy, long, told)
        self._lazy.append(work)
        if not lazy:
            self._flush()
        elif len(self._lazy) == 1:
            loop.call_later(LAZY_WAIT, self._flush)
        return work.future

    async def read(self, job: Callable[[Reader], T]) -> T:
        """Run `job` at once, on committed data."""
        return self.peek(job)

    def peek(self, job: Callable[[Reader], T]) -> T:
        """Run `job` at once, on committed data."""
        if self._over is not None:
            raise self._over
        return in_snapshot(self._reading, self.path, job)

    def close(self) -> None:
        """Commit what waits and close. Again is harmless."""
        if self._over is None:
            self._flush()
            self._over = StoreFailed("the store is closed")
            self._reading.close()
            close_cleanly(self._db)

    def crash(self) -> None:
        """End as a killed process does."""
        if self._over is None:
            self._over = EpochEnded()
            self._reading.close()
            close_cleanly(self._db)

    def _flush(self) -> None:
        group, self._lazy = self._lazy, []
        if self._over is not None or not group:
            return
        try:
            if self._committer.write(group):
                self._committer.commit(group)
        except Dead as death:
            self.crash()
            if self._on_crash is not None:
                self._on_crash(death.__cause__ or death)
            return
        group[0].loop.call_soon(settle, group)
