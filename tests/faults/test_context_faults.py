"""A turn whose context is assembled and compacted on the way: its n-th outgoing operation fails, it dies at its n-th
crash point, for every n; what the manager summarised is never asked about again (engineering notes 5)."""

from __future__ import annotations

import pytest

from iii_harness.entry.points import EntryPoint
from iii_harness.shell.points import LoopPoint
from iii_testing.fault_scenario import FIRST, SESSION, STEER, Scenario
from iii_testing.faulty_bus import FaultyBus, Flavour
from iii_testing.loop_bench import call, reply, text
from iii_testing.played_context import PlayedContext, replies_so_far
from iii_testing.waiting import settle
from iii_testing.world import Crash, manual_world

pytestmark = pytest.mark.anyio

REPLIES = (
    reply(text("looking"), call("c0", "demo::work", {"n": 0})),
    reply(call("c3", "demo::steer", {"n": 3})),
    reply(call("c4", "demo::work", {"n": 4})),
    reply(text("done")),
)


SUMMARY = "# Conversation summary"


def assembling(world, path, *, stepwise: bool) -> Scenario:
    """The scenario with a manager that summarises everything before the steering message, once."""
    run = Scenario(world, path, stepwise=stepwise)
    run.bench.context = context = PlayedContext()

    def model(request):
        if SUMMARY in request["system_prompt"] and not context.told:
            context.told.append(len(context.asked))
        return REPLIES[min(replies_so_far(request), len(REPLIES) - 1)]

    run.bench.model = model
    context.squeezes = lambda request: request.options.previous_summary is None and STEER in str(request.messages[-1])
    return run


async def check(run: Scenario) -> None:
    """The invariants, and what is true of a compaction."""
    await run.check()
    bench = run.bench
    path = await bench.path_of(SESSION)
    compactions = [i for i in path if i.get("custom", {}).get("custom_type") == "compaction"]
    assert len(compactions) <= 1, "the same head was summarised twice"
    behind = [r for r in bench.requests if SUMMARY in r["system_prompt"]]
    context = bench.context
    assert context is not None
    for told in context.told:
        assert all("previous_summary" in asked["options"] for asked in context.asked[told:]), "summarised again"
    assert compactions or not behind, "a summary was sent that is not kept"
    assert all(FIRST not in str(r["messages"]) for r in behind)
    record = await bench.record(SESSION)
    stored = await bench.call("state::get", scope="harness_context", key=SESSION)
    if record.status == "completed":
        assert behind or not compactions, "a summary that no model has seen"
        assert record.context_snapshot is not None
        assert stored is None or stored["step"] <= record.context_snapshot["step"]


async def failed_at(n: int, path, *, flavour: Flavour) -> bool:
    """One run whose n-th operation after the start fails; False when it has no n-th."""
    path.mkdir()
    run = assembling(manual_world(seed=n), path, stepwise=False)
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
            await check(run)
    except Exception as problem:
        raise AssertionError(f"operation {n} ({faulty[0].struck}) {flavour}: {problem}") from problem
    finally:
        await run.bench.close()
    return faulty[0].struck is not None


async def died_at(n: int, path, *, stepwise: bool) -> bool:
    """One run that dies at its n-th point; False when it has no n-th."""
    path.mkdir()
    world = manual_world(seed=n)
    run = assembling(world, path, stepwise=stepwise)
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
        await check(run)
    except AssertionError as problem:
        raise AssertionError(f"died at point {n}, {died}: {problem}") from problem
    finally:
        await run.bench.close()
    return bool(died)


STRIDE = 11
"""The quick suite takes every eleventh; the long one each."""


@pytest.mark.requirement("loop.context.faults")
@pytest.mark.parametrize("stepwise", [False, True], ids=["commit", "stepwise"])
async def test_death_at_some_points_of_an_assembled_turn(tmp_path, stepwise):
    n = 3
    while await died_at(n, tmp_path / str(n), stepwise=stepwise):
        n += STRIDE
    assert n > 60


@pytest.mark.requirement("loop.context.faults")
async def test_the_assembly_itself_fails_or_its_answer_is_lost(tmp_path):
    n = 2
    while await failed_at(n, tmp_path / str(n), flavour="refused"):
        n += STRIDE
    assert n > 20


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("loop.context.faults")
@pytest.mark.parametrize("stepwise", [False, True], ids=["commit", "stepwise"])
async def test_death_at_every_point_of_an_assembled_turn(tmp_path, stepwise):
    n = 1
    while await died_at(n, tmp_path / str(n), stepwise=stepwise):
        n += 1
    assert n > 60


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("loop.context.faults")
@pytest.mark.parametrize("flavour", ["refused", "lost"])
async def test_every_failing_operation_of_an_assembled_turn(tmp_path, flavour):
    n = 1
    while await failed_at(n, tmp_path / str(n), flavour=flavour):
        n += 1
    assert n > 20
