"""The n-th outgoing operation of the harness fails, for every n of a whole turn (engineering notes 5)."""

from __future__ import annotations

import pytest

from iii_testing.fault_scenario import FIRST, Scenario
from iii_testing.faulty_bus import FaultyBus, Flavour
from iii_testing.world import manual_world

pytestmark = pytest.mark.anyio


async def failed_at(n: int, path, *, flavour: Flavour) -> bool:
    """One run whose n-th operation after the start fails; False when it has no n-th."""
    path.mkdir()
    run = Scenario(manual_world(seed=n), path, stepwise=False)
    faulty: list[FaultyBus] = []

    def wrap(bus):
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


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("loop.faults.error")
@pytest.mark.parametrize("flavour", ["refused", "lost"])
async def test_any_failing_operation_leaves_a_turn_that_ends(tmp_path, flavour):
    n = 1
    while await failed_at(n, tmp_path / str(n), flavour=flavour):
        n += 1
    assert n > 30
