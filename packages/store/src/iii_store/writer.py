"""The one writer (design, engine spec 23): what waits is written as one group on the loop, and committed by a thread.

Statements touch memory and are quick; only the commit waits for the disk. So the loop runs the statements of a group,
where no other thread contends for the interpreter, and the thread has the commit alone. A group with a `long` job, and
one that has to wait for another process, is written by the thread too.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable

from iii_store.group import Committer, Dead, Job, Locked, settle

MAX_GROUP = 512
"""Jobs in one commit; more wait for the next."""

LAZY_WAIT = 0.01
"""Seconds that lazy jobs wait for another write to share its commit."""

STILL_TURNS = 4
"""Turns of the loop without a new job before a group begins: sessions that go on together commit together, and their
code stays in the processor's caches meanwhile."""

Group = list[Job]


class Writer:
    """Gathers jobs on the loop. `close` runs on the thread at its end; `died` on the loop at a crash point."""

    def __init__(
        self,
        committer: Committer,
        close: Callable[[], None],
        died: Callable[[BaseException], None],
    ) -> None:
        self._committer = committer
        self._close = close
        self._died = died
        self._waiting: deque[Job] = deque()
        self._start: asyncio.Handle | None = None
        self._start_is_lazy = False
        self._seen = self._still = 0
        self._busy = False
        self._abandoned = False
        self._groups: queue.SimpleQueue[tuple[Group, bool] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._commit_groups, name="store-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Take over one job; its future is settled on its loop."""
        self._waiting.append(job)
        if not self._busy:
            self._schedule(job.loop, lazy=job.lazy)

    def stop(self) -> None:
        """Finish what was submitted, then end the thread."""
        self._unschedule()
        while self._waiting:
            self._groups.put((self._take(), False))
        self._groups.put(None)
        self._thread.join()

    def abandon(self) -> None:
        """End as a dead process does: what has not been committed never is, and nobody is told."""
        self._abandoned = True
        self._waiting.clear()
        self.stop()

    # -- on the loop

    def _schedule(self, loop: asyncio.AbstractEventLoop, *, lazy: bool) -> None:
        if self._start is not None:
            if lazy or not self._start_is_lazy:
                return
            self._start.cancel()
        self._start_is_lazy = lazy
        self._start = loop.call_later(LAZY_WAIT, self._begin) if lazy else loop.call_soon(self._begin)

    def _unschedule(self) -> None:
        if self._start is not None:
            self._start.cancel()
            self._start = None

    def _take(self) -> Group:
        waiting = self._waiting
        return [waiting.popleft() for _ in range(min(len(waiting), MAX_GROUP))]

    def _begin(self) -> None:
        """Write the next group and hand it to the thread, once the loop brings no more jobs to it."""
        waiting = len(self._waiting)
        grown = waiting > self._seen
        if (grown or self._still < STILL_TURNS) and waiting < MAX_GROUP:
            self._seen, self._still = waiting, 1 if grown else self._still + 1
            self._start = self._waiting[0].loop.call_soon(self._begin)
            return
        self._seen = self._still = 0
        self._start = None
        group = self._take()
        if not group:
            return
        self._busy = True
        try:
            written = not any(job.long for job in group) and self._committer.write(group, patient=False)
        except Locked:
            written = False
        except Dead as death:
            self._died(death.__cause__ or death)
            return
        if self._abandoned:
            return
        if not written and all(job.error is not None for job in group):
            group[0].loop.call_soon(self._ended, group)
        else:
            self._groups.put((group, written))

    def _ended(self, group: Group) -> None:
        """A group is on disk, or has failed: tell, and go on with what those who were told have to write."""
        self._busy = False
        settle(group)
        if self._waiting:
            self._schedule(self._waiting[0].loop, lazy=all(job.lazy for job in self._waiting))

    # -- on the thread

    def _commit_groups(self) -> None:
        while (item := self._groups.get()) is not None:
            group, written = item
            if self._abandoned:
                continue
            try:
                if written or self._committer.write(group):
                    self._committer.commit(group)
            except Dead as death:
                self._abandoned = True
                self._tell(group, self._died, death.__cause__ or death)
                continue
            self._tell(group, self._ended, group)
        self._close()

    def _tell(self, group: Group, run: Callable[..., None], *args: object) -> None:
        try:
            group[0].loop.call_soon_threadsafe(run, *args)
        except RuntimeError:
            # The loop is closed: nobody is left to hear of it.
            self._busy = False
