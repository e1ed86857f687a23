"""Group commit: several writes, one transaction, one fsync (design, engine spec 23).

A failing job spoils neither its neighbours nor the batch: hardly any fails, so a group runs without savepoints, and
all of it anew under one each when that turns out wrong. So a job may run twice, and only the second run counts. Results
are released after the commit; when the commit fails, every job of the group fails with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import auto
from pathlib import Path
from typing import Any

from iii_kit.bus import Call
from iii_kit.logs import logger
from iii_kit.storage import Cursor, Tx
from iii_kit.world import Point
from iii_store.database import Database, cut_log
from iii_store.faults import BUSY, LOCKED, StoreFailed, fault, is_fatal, result_code

log = logger(__name__)

_CUT_EVERY = 512
"""Commits between two looks at the size of the log."""


class StorePoint(Point):
    """Where a process may die while it commits."""

    GROUP_WRITTEN = auto()
    """All statements of the group have run; nothing is on disk."""

    GROUP_COMMITTED = auto()
    """The group is on disk; nobody has been told."""


class Dead(BaseException):
    """A crash point ended this writer: it commits nothing and tells nobody, as a dead process would."""


class Job:
    """One write that waits for its commit, and the transaction that its function sees."""

    __slots__ = (
        "_calls",
        "_db",
        "_hooks",
        "_lost",
        "after",
        "careful",
        "error",
        "future",
        "lazy",
        "long",
        "loop",
        "result",
        "run",
        "told",
    )

    def __init__(
        self,
        run: Callable[[Tx], Any],
        after: Callable[[Sequence[Call]], None] | None,
        loop: asyncio.AbstractEventLoop,
        lazy: bool,
        long: bool = False,
        told: Callable[[Any, BaseException | None], None] | None = None,
    ) -> None:
        self.run = run
        self.after = after
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.lazy = lazy
        self.long = long
        self.told = told
        self.careful = False
        self.result: Any = None
        self.error: BaseException | None = None
        self._db: Database | None = None
        self._lost: Exception | None = None
        self._calls: list[Call] | None = None
        self._hooks: list[Callable[[], None]] | None = None

    def execute(self, sql: str, args: Sequence[Any] = ()) -> Cursor:
        """Run one statement."""
        db = self._db
        if db is None:
            raise self._lost or StoreFailed("this transaction is over: its statements run inside its function alone")
        try:
            return db.execute(sql, args)
        except Exception as error:
            if not db.in_transaction or is_fatal(error):
                # SQLite has rolled everything back, or cannot be relied on: no further statement may follow.
                self._db, self._lost = None, error
            raise

    def after_commit(self, call: Call) -> None:
        """Send `call` once this job is on disk."""
        if self._calls is None:
            self._calls = []
        self._calls.append(call)

    def on_commit(self, run: Callable[[], None]) -> None:
        """Run `run` on the event loop once this job is on disk."""
        if self._hooks is None:
            self._hooks = []
        self._hooks.append(run)

    def perform(self, db: Database, *, careful: bool) -> None:
        """Run the function inside the open transaction."""
        self._db, self.careful = db, careful
        self._calls = self._hooks = self._lost = None
        try:
            self.result = self.run(self)
        except Exception as error:
            if self._lost is None or error is self._lost:
                raise
            # The function gave the loss another name; what the database said decides.
            raise self._lost from error
        finally:
            self._db = None
        if self._lost is not None:
            # The function took the loss for its statement's: nothing of it, or of its group, is left to commit.
            raise self._lost

    def settle(self) -> None:
        """On the loop: release the result, and first what waited for the commit."""
        error = self.error
        if error is None and (self._hooks is not None or self._calls is not None):
            self._let_go()
        if self.told is not None:
            self._tell(self.told, error)
            error = None
        if self.future.done():
            return
        if error is None:
            self.future.set_result(self.result)
        else:
            # A future takes no StopIteration.
            self.future.set_exception(RuntimeError(repr(error)) if isinstance(error, StopIteration) else error)

    def _tell(self, told: Callable[[Any, BaseException | None], None], error: BaseException | None) -> None:
        try:
            told(self.result, error)
        except Exception:
            # As below: the others of the group must hear of theirs, and reads that wait for this write must go on.
            log.exception("write_listener_failed")

    def _let_go(self) -> None:
        try:
            for run in self._hooks or ():
                run()
            if self._calls and self.after is not None:
                self.after(self._calls)
        except Exception:
            # The write is on disk whatever its listeners do; the others of the group must hear of theirs.
            log.exception("commit_listener_failed")


class Locked(Exception):
    """Another process holds the database: of a group that may not wait for it nothing has been done."""


class Committer:
    """Writes groups and commits them on one writing connection: `write`, then `commit`, never two groups at a time.

    The two may run in different threads. A group that is written without patience waits for no other process.
    """

    def __init__(self, db: Database, path: Path, reach: Callable[[Point], None]) -> None:
        self._db = db
        self._path = path
        self._reach = reach
        self._patience_ms = db.execute("PRAGMA busy_timeout").fetchone()
        self._patient = True
        self.commits = 0
        self.broken: StoreFailed | None = None

    def write(self, group: Sequence[Job], *, patient: bool = True) -> bool:
        """Run the statements of `group`; False when all of it failed. Raises `Locked`, or `Dead` at a crash point."""
        if self.broken is not None:
            for job in group:
                job.error = self.broken
            return False
        try:
            self._begin(patient)
        except Locked:
            raise
        except BaseException as error:
            self._fail(group, error)
            return False
        return self._attempt(group, self._run)

    def commit(self, group: Sequence[Job]) -> None:
        """Bring a written group to disk; every job ends with a result or an error. Raises `Dead` at a crash point."""
        if self._attempt(group, self._end) and self.commits % _CUT_EVERY == 0:
            self._cut()

    def _attempt(self, group: Sequence[Job], part: Callable[[Sequence[Job]], None]) -> bool:
        try:
            part(group)
        except (Dead, Locked):
            raise
        except BaseException as error:
            self._fail(group, error)
            return False
        return True

    def _begin(self, patient: bool) -> None:
        db = self._db
        if patient is not self._patient:
            db.execute(f"PRAGMA busy_timeout={self._patience_ms[0] if patient and self._patience_ms else 0}")
            self._patient = patient
        self._lock()

    def _lock(self) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except Exception as error:
            if not self._patient and result_code(error) in (BUSY, LOCKED):
                raise Locked from error
            raise

    def _run(self, group: Sequence[Job]) -> None:
        """Run every job, at first as if none could fail; when one does, all anew, each under a savepoint of its own.

        A group with a long job has the savepoints at once: nobody waits for it twice because a neighbour failed.
        """
        if (self._patient and any(job.long for job in group)) or not self._run_lightly(group):
            for job in group:
                if job.error is None:
                    self._run_one(job)
        self._pass(StorePoint.GROUP_WRITTEN)

    def _run_lightly(self, group: Sequence[Job]) -> bool:
        """Run every job without savepoints; False when one failed, and nothing has been done."""
        for job in group:
            if job.error is None:
                try:
                    job.perform(self._db, careful=False)
                except BaseException as error:
                    self._begin_anew(job, error)
                    return False
        return True

    def _begin_anew(self, job: Job, error: BaseException) -> None:
        """Undo the group; what ends a process is not tried twice. Raises a fault that concerns the whole store."""
        found = fault(self._path, error)
        if found is not None and found.fatal:
            raise error
        if not isinstance(error, Exception):
            job.error = error
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._lock()

    def _end(self, _: Sequence[Job]) -> None:
        if self._db.in_transaction:
            self._db.execute("COMMIT")
        self.commits += 1
        self._pass(StorePoint.GROUP_COMMITTED)

    def _run_one(self, job: Job) -> None:
        db = self._db
        db.execute("SAVEPOINT store_job")
        try:
            job.perform(db, careful=True)
        except BaseException as error:
            self._blame(job, error)
            db.execute("ROLLBACK TO store_job")
        db.execute("RELEASE store_job")

    def _blame(self, job: Job, error: BaseException) -> None:
        """Put the failure of a job on this job alone; raises when the whole group is lost with it."""
        found = fault(self._path, error)
        if not self._db.in_transaction or (found is not None and found.fatal):
            raise error
        job.error = found or error

    def _fail(self, group: Sequence[Job], error: BaseException) -> None:
        found = fault(self._path, error)
        failure = found or error
        if found is not None and found.fatal:
            self._break(found)
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except Exception as second:
            self._break(StoreFailed(f"database {self._path}: cannot roll back ({second})", fatal=True))
        for job in group:
            job.error = job.error or failure

    def _break(self, found: StoreFailed) -> None:
        text = f"{found.message}; the store takes no more writes until the process is started again"
        self.broken = StoreFailed(text, fatal=True)
        log.error("store_broken", message=found.message)

    def _cut(self) -> None:
        self._patient = True  # The cut leaves the connection with its full patience.
        try:
            if not cut_log(self._db, self._path):
                log.warning("log_not_cut", path=str(self._path))
        except Exception as error:
            found = fault(self._path, error)
            if found is not None and found.fatal:
                self._break(found)

    def _pass(self, point: StorePoint) -> None:
        try:
            self._reach(point)
        except BaseException as crash:
            raise Dead from crash


def settle(jobs: Sequence[Job]) -> None:
    """On the loop: release a group in its order."""
    for job in jobs:
        job.settle()
