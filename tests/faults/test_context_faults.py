"""A turn whose context is assembled and compacted on the way: its n-th outgoing operation fails, it dies at its n-th
crash point, for every n; what the manager summarised is never asked about again (engineering notes 5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from iii_kit.world import World
from iii_testing.fault_scenario import FIRST, SESSION, STEER, Scenario
from iii_testing.loop_bench import call, reply, text
from iii_testing.nth_failure import died_at, failed_at
from iii_testing.played_context import PlayedContext, replies_so_far

pytestmark = pytest.mark.anyio

REPLIES = (
    reply(text("looking"), call("c0", "demo::work", {"n": 0})),
    reply(call("c3", "demo::steer", {"n": 3})),
    reply(call("c4", "demo::work", {"n": 4})),
    reply(text("done")),
)


SUMMARY = "# Conversation summary"


class Assembled(Scenario):
    """The scenario with a manager that summarises everything before the steering message, once."""

    def __init__(self, world: World, path: Path, *, stepwise: bool) -> None:
        super().__init__(world, path, stepwise=stepwise)
        self.bench.context = context = PlayedContext()

        def model(request):
            if SUMMARY in request["system_prompt"] and not context.told:
                context.told.append(len(context.asked))
            return REPLIES[min(replies_so_far(request), len(REPLIES) - 1)]

        self.bench.model = model
        context.squeezes = lambda request: (
            request.options.previous_summary is None and STEER in str(request.messages[-1])
        )

    async def check(self) -> None:
        """The invariants, and what is true of a compaction."""
        await super().check()
        bench = self.bench
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


STRIDE = 11
"""The quick suite takes every eleventh; the long one each."""


@pytest.mark.requirement("loop.context.faults")
@pytest.mark.parametrize("stepwise", [False, True], ids=["commit", "stepwise"])
async def test_death_at_some_points_of_an_assembled_turn(tmp_path, stepwise):
    n = 3
    while await died_at(n, tmp_path / str(n), stepwise=stepwise, scenario=Assembled):
        n += STRIDE
    assert n > 60


@pytest.mark.requirement("loop.context.faults")
async def test_the_assembly_itself_fails_or_its_answer_is_lost(tmp_path):
    n = 2
    while await failed_at(n, tmp_path / str(n), flavour="refused", scenario=Assembled):
        n += STRIDE
    assert n > 20


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("loop.context.faults")
@pytest.mark.parametrize("stepwise", [False, True], ids=["commit", "stepwise"])
async def test_death_at_every_point_of_an_assembled_turn(tmp_path, stepwise):
    n = 1
    while await died_at(n, tmp_path / str(n), stepwise=stepwise, scenario=Assembled):
        n += 1
    assert n > 60


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("loop.context.faults")
@pytest.mark.parametrize("flavour", ["refused", "lost"])
async def test_every_failing_operation_of_an_assembled_turn(tmp_path, flavour):
    n = 1
    while await failed_at(n, tmp_path / str(n), flavour=flavour, scenario=Assembled):
        n += 1
    assert n > 20
