"""What a queue makes of a process that ended: in process at every crash point, and by SIGKILL of a real one."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from iii_kit.world import Point
from iii_queue.points import QueuePoint
from iii_testing.embedded import embedded
from iii_testing.waiting import settle, until
from iii_testing.world import Crash, ManualWorld, manual_world

sys.path.insert(0, str(Path(__file__).parent))

from provided import Queues, queues

pytestmark = pytest.mark.anyio

PLACES = [(group, n) for n in range(3) for group in "ab"]


def in_order(seen: list[tuple[str, int]]) -> bool:
    """First deliveries of a group come in its order."""
    for group in "ab":
        first = list(dict.fromkeys(n for g, n in seen if g == group))
        if first != sorted(first):
            return False
    return True


class Run:
    """Six jobs in two groups, made and delivered through any number of crashes."""

    def __init__(self, world: ManualWorld, q: Queues) -> None:
        self.world = world
        self.q = q
        self.sent = 0
        self.delivered: list[tuple[str, int]] = []

    async def job(self, data: Any) -> None:
        self.delivered.append((data["g"], data["n"]))

    async def go(self) -> None:
        self.q.serve(self.job)
        await self.q.define(max_retries=3, backoff_ms=0)
        while self.sent < len(PLACES):
            group, n = PLACES[self.sent]
            await self.q.bus.enqueue("q", "t::fn", {"g": group, "n": n})
            self.sent += 1
        while not self.q.provider.dispatcher.idle:
            await settle()
            await self.world.advance(0.1)


@pytest.mark.requirement("queue.recover.nothing_lost")
@pytest.mark.parametrize("point", list(QueuePoint), ids=lambda p: p.name)
async def test_no_job_is_lost_or_overtaken_whichever_point_the_process_ends_at(point: QueuePoint) -> None:
    nth = 1
    while await crashed_at(point, nth):
        nth += 1
    assert nth > 6


async def crashed_at(point: QueuePoint, nth: int) -> bool:
    """A run whose process ends at the nth visit of `point` and starts again; False when there was no such visit."""
    world = manual_world()
    async with queues(world, inline=True) as q:
        run, crashed = Run(world, q), asyncio.Event()

        def crash(at: Point) -> BaseException:
            crashed.set()
            q.stack.crash()
            return Crash(at)

        world.points.make = crash
        world.points.crash_at(nth, point)
        going = asyncio.ensure_future(run.go())
        await until(lambda: crashed.is_set() or going.done())
        await settle()
        if not crashed.is_set():
            await going
            assert sorted(run.delivered) == sorted(PLACES)
            return False
        going.cancel()
        await asyncio.wait({going})
        await q.stack.restart()
        q.begin()
        await run.go()
        assert set(run.delivered) == set(PLACES), f"lost at {point.name} {nth}"
        assert in_order(run.delivered) and q.rows() == []
        return True


@pytest.mark.requirement("queue.recover.deaths")
async def test_a_job_that_ten_processes_died_with_runs_once_more_and_then_is_dead() -> None:
    async with queues() as q:
        started, never = asyncio.Event(), asyncio.Event()

        async def run(_: Any) -> None:
            started.set()
            await never.wait()

        await q.define(max_retries=1)
        q.serve(run)
        await q.bus.enqueue("q", "t::fn", {"g": "a"})
        await started.wait()
        await until(lambda: q.rows() == [("running", 0, 0)])
        for death in range(1, 11):
            started.clear()
            await q.crash_and_restart()
            q.serve(run)
            await q.define(max_retries=1)
            await asyncio.wait_for(started.wait(), 10)
            assert q.rows() == [("running", 0, death)]
        await q.crash_and_restart()
        assert q.rows() == [("dead", 0, 11)]
        assert "11 times" in q.rows("error")[0][0]
        assert q.provider.dispatcher.idle


@pytest.mark.requirement("queue.recover.claimed_before_start")
async def test_a_job_found_on_disk_is_claimed_on_disk_before_its_function_starts() -> None:
    async with queues() as q:
        states: list[str] = []

        async def run(_: Any) -> None:
            states.append(q.rows("state")[0][0])

        await q.define()
        await q.bus.enqueue("q", "t::fn", {"g": "a"})
        await q.crash_and_restart()
        q.serve(run)
        await q.define()
        await until(lambda: q.rows() == [])
        assert states == ["running"]


@pytest.mark.requirement("queue.recover.killed_process")
async def test_a_killed_process_loses_no_job_and_its_successor_keeps_the_order(tmp_path: Path) -> None:
    script = Path(__file__).parent / "killed_process.py"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(script), str(tmp_path), stdout=asyncio.subprocess.PIPE, env=env
    )
    assert child.stdout is not None
    assert await child.stdout.readline() == b"started a 2\n", "two jobs ended, the third runs, two wait"
    child.kill()
    await child.wait()
    async with embedded(directory=tmp_path) as stack:
        q, got = Queues(stack), []
        assert q.rows("deaths") == [(1,), (0,), (0,)]

        async def run(data: Any) -> None:
            got.append(data["n"])

        q.serve(run)
        await q.define()
        await until(lambda: q.rows() == [])
        assert got == [2, 3, 4]
