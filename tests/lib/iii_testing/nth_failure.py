"""One run of a scenario whose n-th operation fails, or that dies at its n-th crash point (engineering notes 5)."""

from __future__ import annotations

from pathlib import Path

from iii_harness.entry.points import EntryPoint
from iii_harness.shell.points import LoopPoint
from iii_kit.bus import Bus
from iii_kit.world import Point
from iii_testing.fault_scenario import FIRST, Scenario
from iii_testing.faulty_bus import FaultyBus, Flavour
from iii_testing.waiting import settle
from iii_testing.world import Crash, manual_world


async def failed_at(n: int, path: Path, *, flavour: Flavour, scenario: type[Scenario] = Scenario) -> bool:
    """One run whose n-th operation after the start fails; False when it has no n-th."""
    run = scenario(manual_world(seed=n), path, stepwise=False)
    faulty: list[FaultyBus] = []

    def wrap(bus: Bus) -> FaultyBus:
        faulty.append(FaultyBus(bus, flavour))
        return faulty[0]

    run.bench.wrap = wrap
    await run.bench.boot()
    faulty[0].arm(n)
    try:
        await run.begin()
        if FIRST in run.accepted:
            await run.finish()
            faulty[0].calm()
            await run.check()
    except Exception as problem:
        raise AssertionError(f"operation {n} ({faulty[0].struck}) {flavour}: {problem}") from problem
    finally:
        await run.bench.close()
    return faulty[0].struck is not None


async def died_at(n: int, path: Path, *, stepwise: bool, scenario: type[Scenario] = Scenario) -> bool:
    """One run that dies at its n-th point; False when it has no n-th."""
    world = manual_world(seed=n)
    run = scenario(world, path, stepwise=stepwise)
    await run.bench.boot()
    died: list[Point] = []

    def die(point: Point) -> Crash:
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
