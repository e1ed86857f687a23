"""The one writer: a thread that takes whatever waits and commits it as one group (design, engine spec 23)."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from itertools import groupby

from iii_store.group import Committer, Dead, Job, settle

MAX_GROUP = 512
"""Jobs in one commit; more wait for the next."""

LAZY_WAIT = 0.01
"""Seconds that lazy jobs wait for another write to share its commit."""


class Writer(threading.Thread):
    """The thread that commits. `close` runs on it at its end; `died` on the loop when a crash point ended it."""

    def __init__(
        self,
        committer: Committer,
        close: Callable[[], None],
        died: Callable[[BaseException], None],
    ) -> None:
        super().__init__(name="store-writer", daemon=True)
        self._committer = committer
        self._close = close
        self._died = died
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._abandoned = False

    def submit(self, job: Job) -> None:
        """Hand over one job; its future is settled on its own loop."""
        self._jobs.put(job)

    def stop(self) -> None:
        """Finish what was submitted, then end the thread."""
        self._jobs.put(None)
        self.join()

    def abandon(self) -> None:
        """End as a dead process does: what has not been committed never is, and nobody is told."""
        self._abandoned = True
        self.stop()

    def run(self) -> None:
        """Take, commit, release, until told to stop."""
        stopping = False
        while not stopping:
            group, stopping = self._take()
            if self._abandoned or not group:
                continue
            try:
                self._committer.commit(group)
            except Dead as death:
                self._abandoned = True
                _tell(group[0].loop, self._died, death.__cause__ or death)
                continue
            _release(group)
        self._close()

    def _take(self) -> tuple[list[Job], bool]:
        jobs = self._jobs
        first = jobs.get()
        if first is None:
            return [], True
        group = [first]
        lazy = first.lazy
        until = time.monotonic() + LAZY_WAIT if lazy else 0.0
        while len(group) < MAX_GROUP:
            wait = max(until - time.monotonic(), 0.0) if lazy else 0.0
            try:
                job = jobs.get(wait > 0, wait)
            except queue.Empty:
                break
            if job is None:
                return group, True
            group.append(job)
            lazy = lazy and job.lazy
        return group, False


def _release(group: list[Job]) -> None:
    """Settle the futures: one hand-over per loop, which is one in all but tests."""
    loop = group[0].loop
    if all(job.loop is loop for job in group):
        _tell(loop, settle, group)
        return
    for each, jobs in groupby(group, key=lambda job: job.loop):
        _tell(each, settle, list(jobs))


def _tell(loop: asyncio.AbstractEventLoop, run: Callable[..., None], *args: object) -> None:
    try:
        loop.call_soon_threadsafe(run, *args)
    except RuntimeError:
        # The loop is closed: nobody is left to hear of it.
        return
