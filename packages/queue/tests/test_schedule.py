"""The schedule of queues against a model that looks through every job again each time."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from iii_queue.schedule import Job, Schedule


def job(seq: int, group: str | None = None, *, queue: str = "q", not_before: int = 0) -> Job:
    return Job(seq, f"id-{seq}", queue, group, "t::fn", not_before=not_before)


class ScheduleMachine(RuleBasedStateMachine):
    """Jobs come, start, fail, wait and end in any order; the model is a list of all jobs that are not over."""

    def __init__(self) -> None:
        super().__init__()
        self.schedule = Schedule(2)
        self.concurrency = {"q": 2, "r": 2}
        self.now = 1_000
        self.seq = 0
        self.alive: list[Job] = []
        self.flying: list[Job] = []
        self.over: list[int] = []

    @rule(queue=st.sampled_from("qr"), group=st.sampled_from([None, "a", "b", "c"]))
    def accept(self, queue: str, group: str | None) -> None:
        self.seq += 1
        added = job(self.seq, group, queue=queue)
        self.alive.append(added)
        self.schedule.add(added)

    @rule()
    def start(self) -> None:
        for started in self.schedule.take(self.now):
            line = [j for j in self.alive if j.queue == started.queue and j.line == started.line]
            assert line[0] is started, "a job overtook one of its group"
            assert started not in self.flying
            assert started.not_before <= self.now
            self.flying.append(started)
            assert self.in_flight(started.queue) <= max(self.concurrency[started.queue], 1)
        for queue in "qr":
            if self.in_flight(queue) < self.concurrency[queue]:
                assert not self.startable(queue), "a job that could start did not"

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def succeed(self, data: st.DataObject) -> None:
        ended = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        self.alive.remove(ended)
        self.over.append(ended.seq)
        self.schedule.done(ended)

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), delay=st.integers(0, 50), absent=st.booleans())
    def fail(self, data: st.DataObject, delay: int, absent: bool) -> None:
        failed = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        failed.absences = failed.absences + 1 if absent else 0
        self.schedule.again(failed, self.now + delay)

    @rule(queue=st.sampled_from("qr"))
    def hurry(self, queue: str) -> None:
        self.schedule.hurry(queue)

    @rule(ms=st.integers(1, 60))
    def wait(self, ms: int) -> None:
        self.now += ms

    @rule(queue=st.sampled_from("qr"), concurrency=st.integers(1, 4))
    def define(self, queue: str, concurrency: int) -> None:
        self.schedule.define(queue, concurrency)
        # What is in flight goes on: a smaller number only holds back what would start.
        self.concurrency[queue] = concurrency

    @invariant()
    def one_of_a_group_is_in_flight_and_nothing_is_lost(self) -> None:
        lines = [(j.queue, j.line) for j in self.flying]
        assert len(lines) == len(set(lines))
        assert len(self.schedule) == len(self.alive)
        assert self.schedule.running == len(self.flying)
        assert sorted(self.over + [j.seq for j in self.alive]) == list(range(1, self.seq + 1))

    @invariant()
    def the_next_time_is_that_of_the_first_waiting_head(self) -> None:
        due = self.schedule.next_due()
        future = [j.not_before for j in self.heads() if j.not_before > self.now and j not in self.flying]
        assert due is None or due <= min(future, default=due)
        assert not future or due is not None

    def teardown(self) -> None:
        for _ in range(10_000):
            if not self.alive:
                break
            self.now += 100
            self.start()
            for ended in list(self.flying):
                self.flying.remove(ended)
                self.alive.remove(ended)
                self.schedule.done(ended)
        assert not self.alive and len(self.schedule) == 0

    def in_flight(self, queue: str) -> int:
        return sum(j.queue == queue for j in self.flying)

    def heads(self) -> list[Job]:
        first: dict[tuple[str, object], Job] = {}
        for j in self.alive:
            first.setdefault((j.queue, j.line), j)
        return list(first.values())

    def startable(self, queue: str) -> list[Job]:
        return [j for j in self.heads() if j.queue == queue and j not in self.flying and j.not_before <= self.now]


class TestSchedule(ScheduleMachine.TestCase):
    pass


TestSchedule = pytest.mark.requirement("queue.schedule.head_of_line")(TestSchedule)


def test_the_oldest_line_goes_first() -> None:
    schedule = Schedule(1)
    for seq, group in ((1, "b"), (2, "a"), (3, "b"), (4, None)):
        schedule.add(job(seq, group))
    order: list[int] = []
    while taken := schedule.take(0):
        order.append(taken[0].seq)
        schedule.done(taken[0])
    assert order == [1, 2, 3, 4]


@pytest.mark.requirement("queue.define.applies_at_once")
def test_a_raised_concurrency_starts_what_waited() -> None:
    schedule = Schedule(1)
    for seq in range(1, 5):
        schedule.add(job(seq, str(seq)))
    assert [j.seq for j in schedule.take(0)] == [1]
    schedule.define("q", 3)
    assert [j.seq for j in schedule.take(0)] == [2, 3]


def test_a_job_starts_soon_when_there_is_room_or_when_it_follows_one_in_flight() -> None:
    schedule = Schedule(1)
    assert schedule.starts_soon(job(1, "a"))
    schedule.add(job(1, "a"))
    assert not schedule.starts_soon(job(2, "a"))
    assert not schedule.starts_soon(job(2, "b"))
    [running] = schedule.take(0)
    assert schedule.starts_soon(job(2, "a"))
    assert not schedule.starts_soon(job(2, "b"))
    follower = Job(2, "id-2", "q", "a", "t::fn", data={}, has_data=True)
    assert not schedule.add(follower)
    assert not schedule.starts_soon(job(3, "a"))
    schedule.again(running, 10)
    assert not follower.has_data, "it waits with the one before it, for as long as that takes"
    schedule.define("q", 2)
    assert schedule.starts_soon(job(4, "b"))


@pytest.mark.requirement("queue.absent.tried_again_at_definition")
def test_hurry_wakes_those_that_wait_for_their_function_alone() -> None:
    schedule = Schedule(4)
    absent, failed = job(1, "a"), job(2, "b")
    for each in (absent, failed):
        schedule.add(each)
    schedule.take(0)
    absent.absences = 1
    schedule.again(absent, 500)
    schedule.again(failed, 700)
    schedule.hurry("q")
    assert schedule.take(10) == [absent]
    assert schedule.next_due() == 700
