"""The process ends at its n-th crash point, really (`os._exit`), and another one goes on (engineering notes 5).

Each run is two processes over one data directory: the first dies, the second must finish by itself and check the
invariants. What the outside world saw (starts of targets, ends of turns) is kept in files that both append to.
"""

from __future__ import annotations

import asyncio
import json
import os
import traceback
from collections import Counter
from pathlib import Path

import pytest

from iii_kit.world import World, real_world
from iii_testing.fault_scenario import FIRST, SESSION, Scenario
from iii_testing.invariants import Seen, check_session

DIED = 9


class OutsideWorld:
    """Lines in files, written at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, kind: str, value: object) -> None:
        with (self._path / f"{kind}.jsonl").open("a") as file:
            file.write(json.dumps(value) + "\n")

    def noted(self, kind: str) -> list:
        file = self._path / f"{kind}.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


class Recorder(Counter):
    """A counter whose every increment is noted outside before it counts."""

    def __init__(self, outside: OutsideWorld) -> None:
        super().__init__()
        for key in outside.noted("started"):
            super().__setitem__(key, self[key] + 1)
        self.outside = outside

    def __setitem__(self, key: str, value: int) -> None:
        self.outside.note("started", key)
        super().__setitem__(key, value)


class Told(list):
    def __init__(self, outside: OutsideWorld) -> None:
        super().__init__(outside.noted("completed"))
        self.outside = outside

    def append(self, event: object) -> None:
        self.outside.note("completed", event)
        super().append(event)


def a_run(path: Path, world: World) -> Scenario:
    outside = OutsideWorld(path)
    run = Scenario(world, path, stepwise=os.environ.get("III_STEPWISE") == "1", inline=False)
    run.bench.started = Recorder(outside)
    run.bench.completed = Told(outside)
    return run


async def first_process(path: Path, n: int) -> None:
    left = n

    def reach(_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os._exit(DIED)

    calm = real_world()
    run = a_run(path, World(calm.clock, calm.ids, calm.random, reach))
    await to_rest(run)
    await run.bench.close()


async def to_rest(run: Scenario) -> None:
    """Boot, send the first message under its key, and wait until everything is over and told."""
    await run.bench.boot()
    await run.send(FIRST)
    async with asyncio.timeout(30):
        while not await run.at_rest():
            await run.bench.progress()


async def second_process(path: Path) -> None:
    run = a_run(path, real_world())
    await to_rest(run)
    seen = Seen(run.bench.started, run.bench.requests, run.bench.completed, ())
    await check_session(run.bench.client, SESSION, seen)
    await run.bench.close()


def forked(work, path: Path) -> int:
    """Exit code of a child process that does `work`."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work)
            os._exit(0)
        except BaseException:
            (path / "problem.txt").write_text(traceback.format_exc())
            os._exit(1)
    work.close()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.requirement("loop.faults.exit")
@pytest.mark.parametrize("stepwise", ["0", "1"], ids=["commit", "stepwise"])
def test_a_process_that_ends_at_any_point_is_taken_over(tmp_path, stepwise, monkeypatch):
    monkeypatch.setenv("III_STEPWISE", stepwise)
    (tmp_path / "warm").mkdir()
    asyncio.run(first_process(tmp_path / "warm", 0))  # the children inherit its schemas and compiled validators
    for n in range(1, 400, int(os.environ.get("III_STRIDE", "6"))):
        path = tmp_path / str(n)
        path.mkdir()
        code = forked(first_process(path, n), path)
        assert code in (0, DIED), f"point {n}: {(path / 'problem.txt').read_text()}"
        if code == 0:
            assert n > 80
            return
        assert forked(second_process(path), path) == 0, f"point {n}: {(path / 'problem.txt').read_text()}"
    raise AssertionError("a run without an n-th point was never reached")
