"""The one writer: a thread that takes whatever waits and commits it as one group (design, engine spec 23).

Every job runs under a savepoint, so a failing one spoils neither its neighbours nor the batch. Results are released
after the commit, that is after fsync; when the commit itself fails every job of the group fails with it.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from iii_kit.bus import Call
from iii_kit.storage import Cursor, Tx

MAX_GROUP = 512
"""Jobs in one commit; more wait for the next."""

LAZY_WAIT = 0.01
"""Seconds that lazy jobs wait for another write to share its commit."""


class WriterTx:
    """The transaction of one job."""

    __slots__ = ("_calls", "_execute", "_hooks")

    def __init__(self, execute: Callable[..., Cursor], calls: list[Call], hooks: list[Callable[[], None]]) -> None:
        self._execute = execute
        self._calls = calls
        self._hooks = hooks

    def execute(self, sql: str, args: Sequence[Any] = ()) -> Cursor:
        """Run one statement."""
        return self._execute(sql, args)

    def after_commit(self, call: Call) -> None:
        """Send `call` once this job is on disk."""
        self._calls.append(call)

    def on_commit(self, run: Callable[[], None]) -> None:
        """Run `run` on the event loop once this job is on disk."""
        self._hooks.append(run)


@dataclass(slots=True)
class Job:
    """One write that waits for its commit."""

    run: Callable[[Tx], Any]
    after: Callable[[Sequence[Call]], None] | None
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    lazy: bool = False
    calls: list[Call] = field(default_factory=list[Call])
    hooks: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    result: Any = None
    error: BaseException | None = None

    def settle(self) -> None:
        """On the loop: release the result, and first what waited for the commit."""
        if self.error is None:
            for run in self.hooks:
                run()
        if self.error is None and self.calls and self.after is not None:
            self.after(self.calls)
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer(threading.Thread):
    """The thread that owns the writing connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__(name="store-writer", daemon=True)
        self._db = db
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.commits = 0

    def submit(self, job: Job) -> None:
        """Hand over one job; its future is settled on its own loop."""
        self._jobs.put(job)

    def stop(self) -> None:
        """Finish what was submitted, then end the thread."""
        self._jobs.put(None)
        self.join()

    def run(self) -> None:
        """Take, run, commit, release, until told to stop."""
        while True:
            group, stopping = self._take()
            if group:
                self._commit(group)
                _release(group)
            if stopping:
                self._db.close()
                return

    def _take(self) -> tuple[list[Job], bool]:
        first = self._jobs.get()
        if first is None:
            return [], True
        group = [first]
        lazy, until = first.lazy, time.monotonic() + LAZY_WAIT
        while len(group) < MAX_GROUP:
            wait = until - time.monotonic() if lazy else 0
            try:
                job = self._jobs.get(wait > 0, max(wait, 0))
            except queue.Empty:
                break
            if job is None:
                return group, True
            group.append(job)
            lazy = lazy and job.lazy
        return group, False

    def _commit(self, group: list[Job]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for job in group:
                self._run_job(job)
            self._db.execute("COMMIT")
            self.commits += 1
        except BaseException as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            for job in group:
                job.error = job.error or error

    def _run_job(self, job: Job) -> None:
        db = self._db
        db.execute("SAVEPOINT job")
        try:
            job.result = job.run(WriterTx(db.execute, job.calls, job.hooks))
        except BaseException as error:
            if not db.in_transaction:
                raise
            db.execute("ROLLBACK TO job")
            job.error = error
            job.calls.clear()
            job.hooks.clear()
        db.execute("RELEASE job")


def _release(group: list[Job]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in group:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, jobs in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, jobs)


def _settle(jobs: list[Job]) -> None:
    for job in jobs:
        job.settle()
