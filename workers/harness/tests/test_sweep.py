"""Upkeep: orphans, expired keys, deleted sessions."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from iii_kit.errors import BusError, EpochEnded, PayloadTooLarge
from iii_testing.entry_bench import opened
from iii_testing.waiting import settle

pytestmark = pytest.mark.anyio


@pytest.fixture
async def bench(world, tmp_path):
    async with opened(world, tmp_path) as bench:
        yield bench


async def jobs(bench):
    return [(job["session_id"], job["step"]) for job in await bench.jobs()]


@pytest.mark.requirement("entry.redrive.age")
async def test_a_running_turn_that_has_not_moved_for_two_minutes_is_enqueued_again(bench, world):
    await bench.send(session_id="s1")
    world.manual_clock.skip(119.9)
    assert (await bench.call("harness::sweep-pending"))["redriven"] == 0
    world.manual_clock.skip(0.2)
    assert await bench.call("harness::sweep-pending", scheduled_at="x") == {
        "ok": True,
        "resolved": 0,
        "redriven": 1,
        "converted": 0,
        "prompts_collected": 0,
    }
    assert await jobs(bench) == [("s1", 0), ("s1", 0)]
    assert (await bench.record("s1")).updated_at == world.clock.now_ms()
    assert (await bench.call("harness::sweep-pending"))["redriven"] == 0


@pytest.mark.requirement("entry.redrive.spares")
async def test_executing_ended_and_waiting_turns_are_left_alone(bench, world):
    turn_id = (await bench.send(session_id="s_busy"))["turn_id"]
    bench.executing.enter("s_busy", turn_id, 0)
    for session_id, status in (("s_done", "completed"), ("s_waits", "awaiting_functions")):
        await bench.send(session_id=session_id)
        await bench.turns.save(replace(await bench.record(session_id), status=status))
    world.manual_clock.skip(1000)
    assert await bench.sweeper.redrive() == 0
    assert await bench.sweeper.redrive(whatever_age=True) == 0
    bench.executing.leave("s_busy", turn_id, 0)
    assert await bench.sweeper.redrive() == 1


@pytest.mark.requirement("entry.redrive.boot")
async def test_a_restart_enqueues_every_running_turn_at_once(bench):
    for n in range(5):
        await bench.send(session_id=f"s{n}")
    bench = bench.restarted()
    await bench.bring_back()
    assert sorted(await jobs(bench)) == sorted([(f"s{n}", 0) for n in range(5)] * 2)


@pytest.mark.requirement("entry.redrive.failure")
async def test_a_queue_that_refuses_does_not_fail_the_sweep(bench, world):
    await bench.send(session_id="s1")
    world.manual_clock.skip(1000)
    bench.enqueue_failures = 1
    sweeping = asyncio.ensure_future(bench.call("harness::sweep-pending"))
    while not sweeping.done():
        await asyncio.sleep(0.001)
        await world.advance(0.1)
    assert (await sweeping)["redriven"] == 1


@pytest.mark.requirement("entry.sweep.prompts")
async def test_a_sweep_forgets_prompts_without_a_turn_at_most_once_an_hour(bench, world):
    await bench.client.call(
        "state::set", {"scope": "harness_prompt", "key": "d1", "value": {"digest": "d1", "body": "x"}}
    )
    assert (await bench.call("harness::sweep-pending"))["prompts_collected"] == 1
    await bench.client.call(
        "state::set", {"scope": "harness_prompt", "key": "d2", "value": {"digest": "d2", "body": "x"}}
    )
    assert (await bench.call("harness::sweep-pending"))["prompts_collected"] == 0
    world.manual_clock.skip(3600)
    assert (await bench.call("harness::sweep-pending"))["prompts_collected"] == 1
    assert await bench.rows("harness_prompt") == []


@pytest.mark.requirement("entry.deleted")
async def test_nothing_of_a_deleted_session_remains(bench):
    for session_id in ("s1", "s2"):
        await bench.send(session_id=session_id)
        await bench.send("more", session_id=session_id)
        await bench.call("state::set", scope="harness_context", key=session_id, value={"session_id": session_id})
    for _ in range(2):
        assert await bench.call("harness::on-session-deleted", session_id="s1") == {"ok": True, "removed": 0}
    for scope in ("harness_turn", "harness_queue", "harness_context"):
        assert [row["session_id"] for row in await bench.rows(scope)] == ["s2"]
    assert await bench.delivery.parked("s1") == []


@pytest.mark.requirement("entry.deleted.lock")
async def test_the_rows_of_a_deleted_session_go_when_its_step_lets_go_of_it(bench):
    await bench.send(session_id="s1")
    record = await bench.record("s1")
    async with bench.locks.hold("s1"):
        purging = asyncio.ensure_future(bench.call("harness::on-session-deleted", session_id="s1"))
        await settle(50)
        assert await bench.rows("harness_turn"), "a step that holds the session would write its record anew"
        await bench.turns.save(record)
    assert (await purging)["ok"]
    assert await bench.rows("harness_turn") == []


@pytest.mark.requirement("entry.deleted.bad")
@pytest.mark.parametrize("data", [{}, {"session_id": 3}])
async def test_bad_input_names_the_field(bench, data):
    with pytest.raises(BusError) as error:
        await bench.client.call("harness::on-session-deleted", data)
    assert error.value.matches("harness/invalid_request") and "`session_id`" in error.value.message


class Narrow:
    """A bus over which one answer carries the records of two turns at most."""

    def __init__(self, bus, error):
        self._bus = bus
        self._error = error
        self.refused = 0

    def __getattr__(self, name):
        return getattr(self._bus, name)

    async def call(self, fn, data, **options):
        answer = await self._bus.call(fn, data, **options)
        if fn == "state::list" and data["scope"] == "harness_turn" and len(answer) > 2:
            self.refused += 1
            raise self._error
        return answer


@pytest.mark.requirement("entry.redrive.many")
@pytest.mark.parametrize(
    "error", [PayloadTooLarge(1, 0), EpochEnded()], ids=["one answer is refused", "the connection ends"]
)
async def test_turns_are_recovered_where_one_answer_cannot_carry_all_records(bench, error):
    for n in range(4):
        await bench.send(session_id=f"s_done{n}")
        await bench.turns.save(replace(await bench.record(f"s_done{n}"), status="completed"))
    await bench.send(session_id="s_runs")
    bench = bench.restarted()
    narrow = bench.turns._bus = Narrow(bench.turns._bus, error)
    if isinstance(error, EpochEnded):
        with pytest.raises(EpochEnded):
            await bench.sweeper.redrive(whatever_age=True)
        bench.turns.renewed()  # the next connection
    assert await bench.sweeper.redrive(whatever_age=True) == 1
    assert (await jobs(bench)).count(("s_runs", 0)) == 2
    assert narrow.refused == 1, "once is enough to know"
    assert await bench.turns.collect_prompts() == 0
    assert [row["session_id"] for row in await bench.rows("harness_running")] == ["s_runs"]


@pytest.mark.requirement("entry.redrive.index")
async def test_the_index_names_every_turn_that_is_not_over(bench):
    await bench.send(session_id="s1")
    assert [row["session_id"] for row in await bench.rows("harness_running")] == ["s1"]
    await bench.turns.save(replace(await bench.record("s1"), status="completed"))
    await bench.sweeper.redrive()
    assert await bench.rows("harness_running") == []
    await bench.send("again", session_id="s1")
    assert [row["session_id"] for row in await bench.rows("harness_running")] == ["s1"]
    await bench.sweeper.redrive()
    assert len(await bench.rows("harness_running")) == 1
    await bench.call("harness::on-session-deleted", session_id="s1")
    assert await bench.rows("harness_running") == []
