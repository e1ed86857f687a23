"""Every interleaving of one session, two messages, one call, one crash and one stop, through the pure decisions.

The model below is the shell without I/O: writes are made one at a time, and between any two of them, and before and
after every generation and invocation, the second message may arrive, the turn may be stopped, the process may die.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from iii_harness.decide.core import decide
from iii_harness.decide.decision import (
    Append,
    Cut,
    Delivered,
    Drain,
    Drained,
    End,
    Enqueue,
    Event,
    Facts,
    Generated,
    Invoke,
    Park,
    Prepare,
    Ready,
    Reload,
    Reloaded,
    Returned,
    Rewrite,
    Save,
    Stream,
    View,
)
from iii_harness.decide.plan import calls_of
from iii_harness.decide.results import of_value
from iii_harness.record import TurnRecord
from iii_testing.loop_values import AllowAll, a_call, a_record, a_reply, words


class Died(Exception):
    pass


@dataclass
class World:
    """What is on disk, what the process holds, and when the three disturbances strike."""

    arrives: int
    stops: int
    dies: int
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    record: TurnRecord | None = None
    jobs: list[tuple[str, int]] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)
    ended: dict[str, TurnRecord] = field(default_factory=dict)
    accepted: list[str] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    fired: set[str] = field(default_factory=set)
    locked: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list)
    scheduled: bool = True
    points: int = 0

    def point(self) -> None:
        """A place where anything may happen."""
        self.points += 1
        if self.points == self.arrives:
            self.send("second")
        if self.points == self.stops:
            self.stop()
        if self.points == self.dies:
            raise Died

    def send(self, entry_id: str) -> None:
        if self.record is not None and not self.record.terminal:
            self.accepted.append(entry_id)
            self.rows.append(entry_id)
        else:
            self.under_lock(lambda: self.start(entry_id))

    def start(self, entry_id: str) -> None:
        self.accepted.append(entry_id)
        if self.record is not None and not self.record.terminal:
            self.rows.append(entry_id)
            return
        self.user(entry_id)
        self.seed(f"t{len(self.ended)}")

    def under_lock(self, work: Callable[[], None]) -> None:
        """Now, or when the step that holds the session's lock lets it go; lost when the process dies first."""
        if self.locked:
            self.waiting.append(work)
        else:
            work()

    def unlock(self) -> None:
        self.locked = False
        while self.waiting:
            self.waiting.pop(0)()

    def seed(self, turn_id: str) -> None:
        self.record = a_record(turn_id=turn_id)
        self.jobs.append((turn_id, 0))

    def user(self, entry_id: str) -> None:
        self.entries.setdefault(entry_id, {"role": "user", "content": [words(entry_id)]})

    def stop(self) -> None:
        record = self.record
        if record is None or record.terminal:
            return
        self.fired.add(record.turn_id)
        self.under_lock(lambda: self.mark(record.turn_id))

    def mark(self, turn_id: str) -> None:
        record = self.record
        if record is None or record.turn_id != turn_id or record.terminal:
            return
        self.record = replace(record, abort=True)
        if not self.jobs:
            self.jobs.append((record.turn_id, record.step))


class Process:
    """One delivery, as the shell runs it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.view = View()
        self.seen: list[str] = []

    def deliver(self, job: tuple[str, int]) -> None:
        self.world.locked = True
        event: Event | None = Delivered(*job)
        record = self.world.record
        while event is not None:
            decision = decide(record, self.view, event, self.facts(event))
            record = decision.record
            for write in decision.writes:
                self.world.point()
                self.write(write)
            self.world.point()
            event = self.perform(decision.next, record)
            if isinstance(event, Generated) and self.world.record is not None and record is not None:
                record = replace(record, abort=self.world.record.abort)
        self.world.unlock()

    def facts(self, event: Event) -> Facts:
        world, record = self.world, self.world.record
        steered = False
        if isinstance(event, (Generated, Reloaded)) and not calls_of(event.message.get("content")):
            unseen = [e for e, m in world.entries.items() if m["role"] == "user" and e not in self.seen]
            steered = bool(world.rows or unseen)
        stopped = record is not None and record.turn_id in world.fired
        return Facts(now_ms=1, stopped=stopped, steered=steered, scheduled=world.scheduled, gate=AllowAll())

    def write(self, write: Any) -> None:
        world = self.world
        match write:
            case Append(entry_id, message, kind, data):
                world.entries.setdefault(entry_id, message or {"role": "custom", "kind": kind, "data": data})
            case Rewrite(entry_id, message):
                world.entries[entry_id] = message
                world.shown.update(self.seen)
                self.view = View(message, self.view.leaf, self.view.logged)
            case Save(record):
                world.record = record
            case Enqueue(record):
                world.jobs.append((record.turn_id, record.step))
                world.scheduled = True

    def perform(self, then: Any, record: TurnRecord | None) -> Event | None:
        world = self.world
        match then:
            case Drain():
                assert record is not None
                reply = world.entries.get(f"e_{record.turn_id}_{record.step}_assistant")
                if reply is None or not reply["content"]:
                    self.drain()
                return Drained()
            case Prepare():
                self.seen = list(world.entries)
                self.view = View(leaf=self.seen[-1])
                return Ready(sendable=True)
            case Stream():
                world.unlock()
                world.point()
                world.locked = True
                return Generated(self.reply(), ok=True)
            case Reload():
                assert record is not None
                message = world.entries[f"e_{record.turn_id}_{record.step}_assistant"]
                at = list(world.entries).index(record.watermark_entry_id or "")
                self.seen = list(world.entries)[: at + 1]
                self.view = View(message, record.watermark_entry_id, frozenset(world.entries))
                return Reloaded(message)
            case Invoke(call):
                if world.record is not None and world.record.turn_id in world.fired:
                    return Cut(call)
                world.started.append(f"{record.turn_id if record else ''}/{call.id}")
                world.point()
                if world.record is not None and world.record.turn_id in world.fired:
                    return Cut(call)
                return Returned(call, of_value("r"))
            case Park():
                return None
            case End():
                assert record is not None
                self.end(record)
                return None

    def reply(self) -> dict[str, Any]:
        shown = [m for e, m in self.world.entries.items() if e in self.seen]
        results = sum(m["role"] == "function_result" for m in shown)
        return a_reply(words("done")) if results else a_reply(a_call("c1"))

    def drain(self) -> None:
        for row in list(self.world.rows):
            self.world.user(row)
            self.world.point()
            self.world.rows.remove(row)

    def end(self, record: TurnRecord) -> None:
        world = self.world
        world.told.append((record.turn_id, record.status))
        world.ended[record.turn_id] = record
        world.point()
        rows = list(world.rows)
        for row in rows:
            world.user(row)
        if rows and record.status != "cancelled":
            world.seed(f"t{len(world.ended)}")
        world.point()
        world.rows = [row for row in world.rows if row not in rows]


def run(arrives: int, stops: int, dies: int) -> World:
    world = World(arrives, stops, dies)
    world.send("first")
    for _ in range(60):
        if not world.jobs:
            if not restarted_work(world):
                break
            continue
        job = world.jobs[0]
        try:
            Process(world).deliver(job)
        except Died:
            world.fired.clear()
            world.waiting.clear()
            world.locked = False
            world.scheduled = False
            continue
        world.jobs.remove(job)
    else:
        raise AssertionError("the session never comes to rest")
    return world


def restarted_work(world: World) -> bool:
    """What a restart brings back: the current step of a live turn, the rows of an ended one."""
    record = world.record
    if record is not None and not record.terminal:
        world.jobs.append((record.turn_id, record.step))
        return True
    if record is not None and world.rows:
        Process(world).end(record)
        return True
    return False


def check(world: World) -> None:
    record = world.record
    assert record is not None and record.terminal
    assert world.rows == []
    assert len(world.started) == len(set(world.started)), f"started twice: {world.started}"
    assert set(world.ended) == {turn for turn, _ in world.told}
    assert len({(turn, status) for turn, status in world.told}) == len(world.ended), "one turn, two endings"
    results = [m["function_call_id"] for m in world.entries.values() if m["role"] == "function_result"]
    whole = list(world.entries.values())
    for index, message in enumerate(whole):
        for call in calls_of(message.get("content")) if message["role"] == "assistant" else []:
            if any(s.endswith(call["id"]) for s in world.started):
                assert results.count(call["id"]) >= 1
            after = [m.get("function_call_id") for m in whole[index + 1 :]]
            cancelled = any(r.status == "cancelled" for r in world.ended.values())
            assert call["id"] in after or cancelled
    for entry_id in world.accepted:
        assert entry_id in world.entries
        assert entry_id in world.shown or any(r.status == "cancelled" for r in world.ended.values())


def check_all(interleavings: Iterable[tuple[int, int, int]]) -> None:
    for arrives, stops, dies in interleavings:
        world = run(arrives, stops, dies)
        try:
            check(world)
        except AssertionError as problem:
            raise AssertionError(f"arrives={arrives} stops={stops} dies={dies}: {problem}") from problem


def places() -> range:
    """0 is "never"; the rest covers an undisturbed run and what a disturbance adds to it."""
    length = run(0, 0, 0).points
    assert 15 <= length <= 60
    return range(length + 5)


@pytest.mark.requirement("loop.model.exhaustive")
def test_every_interleaving_of_two_disturbances_keeps_the_invariants():
    check_all(cube for cube in itertools.product(places(), repeat=3) if 0 in cube)


@pytest.mark.slow
@pytest.mark.requirement("loop.model.exhaustive")
def test_every_interleaving_of_message_stop_and_crash_keeps_the_invariants():
    check_all(itertools.product(places(), repeat=3))
