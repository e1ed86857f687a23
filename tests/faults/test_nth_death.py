"""Death at the n-th crash point of a whole turn, for every n there is (engineering notes 5, "n-th failure loop")."""

from __future__ import annotations

import pytest

from iii_harness.entry.points import EntryPoint
from iii_harness.shell.points import LoopPoint
from iii_testing.fault_scenario import FIRST, Scenario
from iii_testing.waiting import settle
from iii_testing.world import Crash, manual_world

pytestmark = pytest.mark.anyio


async def died_at(n, path, *, stepwise) -> bool:
    """One run that dies at its n-th point; False when it has no n-th."""
    path.mkdir()
    world = manual_world(seed=n)
    run = Scenario(world, path, stepwise=stepwise)
    await run.bench.boot()
    died = []

    def die(point):
        died.append(point)
        run.bench.crash(inside_writer=not isinstance(point, LoopPoint | EntryPoint))
        return Crash(point)

    world.points.make = die
    world.points.crash_at(n)
    try:
        await run.begin()
        while not died and not await run.at_rest():
            await run.calm_down()
    except BaseException:
        if not died:
            raise
    world.points.calm()
    if died:
        await settle()
        await run.bench.boot()
        if FIRST not in run.accepted:
            await run.send(FIRST)
    await run.finish()
    try:
        await run.check()
    except AssertionError as problem:
        raise AssertionError(f"died at point {n}, {died}: {problem}") from problem
    finally:
        await run.bench.close()
    return bool(died)


STRIDE = 9
"""The quick suite dies at every ninth point; the long one at each."""


@pytest.mark.requirement("loop.faults.death")
@pytest.mark.parametrize("stepwise", [False, True], ids=["commit", "stepwise"])
async def test_death_at_some_points_leaves_a_turn_that_finishes(tmp_path, stepwise):
    n = 5 if stepwise else 2
    while await died_at(n, tmp_path / str(n), stepwise=stepwise):
        n += STRIDE
    assert n > 100


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("loop.faults.death")
@pytest.mark.parametrize("stepwise", [False, True], ids=["commit", "stepwise"])
async def test_death_at_every_point_leaves_a_turn_that_finishes(tmp_path, stepwise):
    n = 1
    while await died_at(n, tmp_path / str(n), stepwise=stepwise):
        n += 1
    assert n > 100
