"""Which jobs may start (siblings 9): a pure schedule in memory, beside the rows on disk.

Jobs with the same group are one line: while its first job runs or waits for its time, no later one starts (head of
line). A job without a group is a line of its own. Of the lines that may go on, the one whose first job is oldest does,
up to the queue's concurrency. Times are epoch milliseconds and are given by the caller.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

Line = str | int


class Job(msgspec.Struct, eq=False):
    """A job that is on disk. `data` is kept only for a job that may start soon; others are read when they do.

    `fresh`: accepted by this process. One that was found on disk is claimed durably before it starts, so that a job
    that kills its host at once is counted.
    """

    seq: int
    id: str
    queue: str
    group: str | None
    function_id: str
    namespace: str | None = None
    traceparent: str | None = None
    baggage: str | None = None
    attempt: int = 0
    not_before: int = 0
    fresh: bool = True
    absences: int = 0
    data: Any = None
    has_data: bool = False
    in_flight: bool = False

    @property
    def line(self) -> Line:
        """The jobs it must not overtake: its group, or itself alone."""
        return self.seq if self.group is None else self.group

    def forget_data(self) -> None:
        """It does not start soon after all."""
        self.data, self.has_data = None, False


@dataclass(slots=True)
class Lane:
    """The lines of one queue. A line's first job is in `due`, in `timed` or in flight."""

    concurrency: int
    running: int = 0
    lines: dict[Line, deque[Job]] = field(default_factory=dict[Line, "deque[Job]"])
    due: list[tuple[int, Line]] = field(default_factory=list[tuple[int, Line]])
    timed: list[tuple[int, int, Line]] = field(default_factory=list[tuple[int, int, Line]])

    def offer(self, job: Job) -> None:
        """The first job of a line waits to start."""
        if job.not_before > 0:
            heapq.heappush(self.timed, (job.not_before, job.seq, job.line))
        else:
            heapq.heappush(self.due, (job.seq, job.line))

    def ripen(self, now: int) -> None:
        """Move what has come of age among the due."""
        while self.timed and self.timed[0][0] <= now:
            _, seq, line = heapq.heappop(self.timed)
            heapq.heappush(self.due, (seq, line))


class Schedule:
    """All queues of one provider."""

    def __init__(self, concurrency: int) -> None:
        self._default = concurrency
        self._lanes: dict[str, Lane] = {}

    def __len__(self) -> int:
        return sum(len(line) for lane in self._lanes.values() for line in lane.lines.values())

    @property
    def running(self) -> int:
        """Jobs in flight."""
        return sum(lane.running for lane in self._lanes.values())

    def define(self, queue: str, concurrency: int) -> None:
        """Set how many lines of a queue may be in flight; what runs goes on."""
        self._lane(queue).concurrency = concurrency

    def starts_soon(self, job: Job) -> bool:
        """True when a job that is about to be added could start at once, or when the one that runs in its line ends."""
        lane = self._lanes.get(job.queue)
        if lane is None:
            return True
        line = lane.lines.get(job.line)
        if line is None:
            return lane.running + len(lane.due) < lane.concurrency
        return len(line) == 1 and line[0].in_flight

    def add(self, job: Job) -> bool:
        """A job is on disk; jobs are added in the order of their `seq`. False when it waits for others of its line."""
        lane = self._lane(job.queue)
        line = lane.lines.get(job.line)
        if line is None:
            lane.lines[job.line] = deque((job,))
            lane.offer(job)
            return True
        line.append(job)
        return False

    def take(self, now: int) -> list[Job]:
        """The jobs that start now; they are in flight until `done` or `again`."""
        taken: list[Job] = []
        for lane in self._lanes.values():
            if lane.timed:
                lane.ripen(now)
            while lane.due and lane.running < lane.concurrency:
                _, line = heapq.heappop(lane.due)
                lane.running += 1
                job = lane.lines[line][0]
                job.in_flight = True
                taken.append(job)
        return taken

    def done(self, job: Job) -> None:
        """A job in flight is over, well or dead: its line goes on with the next."""
        lane = self._lanes[job.queue]
        lane.running -= 1
        line = lane.lines[job.line]
        line.popleft()
        if line:
            lane.offer(line[0])
        else:
            del lane.lines[job.line]

    def again(self, job: Job, not_before: int) -> None:
        """A job in flight is to be delivered again, not before that time; its line waits for it."""
        lane = self._lanes[job.queue]
        lane.running -= 1
        job.in_flight = False
        job.not_before = not_before
        for waiting in islice(lane.lines[job.line], 2):
            waiting.forget_data()
        lane.offer(job)

    def hurry(self, queue: str) -> None:
        """Jobs of a queue that wait for their function may be tried at once."""
        lane = self._lane(queue)
        for not_before, seq, line in lane.timed:
            job = lane.lines[line][0]
            if job.absences:
                job.not_before = 0
                heapq.heappush(lane.due, (seq, line))
            else:
                assert job.not_before == not_before
        lane.timed = [entry for entry in lane.timed if not lane.lines[entry[2]][0].absences]
        heapq.heapify(lane.timed)

    def next_due(self) -> int | None:
        """The earliest time at which a waiting job comes of age, or None."""
        return min((lane.timed[0][0] for lane in self._lanes.values() if lane.timed), default=None)

    def _lane(self, queue: str) -> Lane:
        lane = self._lanes.get(queue)
        if lane is None:
            lane = self._lanes[queue] = Lane(self._default)
        return lane
