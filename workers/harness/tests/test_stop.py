"""`harness::stop`: durable, idempotent, and acted upon whoever runs the turn."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from iii_contracts.spec import FunctionSpec
from iii_kit.errors import BusError
from iii_testing.entry_bench import Cut, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
async def bench(world, tmp_path):
    async with opened(world, tmp_path) as bench:
        yield bench


async def status_of(bench, session_id):
    meta = (await bench.call("session::get", session_id=session_id))["meta"]
    return meta["status"], meta.get("status_reason")


@pytest.mark.requirement("entry.stop.running")
async def test_a_stop_is_durable_signalled_and_idempotent(bench):
    session_id, turn_id = await started(bench)
    bench.executing.enter(session_id, turn_id, 0)
    waits = asyncio.ensure_future(bench.signals.wait(turn_id))
    for _ in range(2):
        assert await bench.call("harness::stop", session_id=session_id) == {"stopping": True}
    await asyncio.wait_for(waits, 5)
    assert (await bench.record(session_id)).abort and bench.signals.fired(turn_id)
    assert await status_of(bench, session_id) == ("working", "stopping")
    assert len(await bench.jobs()) == 1
    await bench.end(await bench.record(session_id), "cancelled")
    assert await bench.call("harness::stop", session_id=session_id) == {"stopping": False}
    assert len(bench.signals) == 0


async def started(bench):
    answer = await bench.send()
    return answer["session_id"], answer["turn_id"]


@pytest.mark.requirement("entry.stop.wakes")
async def test_a_running_turn_that_no_step_executes_is_enqueued_again(bench):
    session_id, turn_id = await started(bench)
    await bench.turns.save(replace(await bench.record(session_id), step=3))
    await bench.call("harness::stop", session_id=session_id)
    assert [(job["turn_id"], job["step"]) for job in await bench.jobs()] == [(turn_id, 0), (turn_id, 3)]


@pytest.mark.requirement("entry.stop.waiting")
async def test_a_turn_that_waits_for_calls_is_finalised_at_once(bench):
    session_id, _ = await started(bench)
    await bench.turns.save(replace(await bench.record(session_id), status="awaiting_functions"))
    assert await bench.call("harness::stop", session_id=session_id) == {"stopping": True}
    assert (await bench.record(session_id)).status == "cancelled"
    assert len(await bench.jobs()) == 1


@pytest.mark.requirement("entry.stop.foreign")
async def test_another_turn_an_ended_one_and_an_unknown_session_answer_false_and_change_nothing(bench):
    session_id, turn_id = await started(bench)
    before = await bench.record(session_id)
    assert await bench.call("harness::stop", session_id=session_id, turn_id="t_other") == {"stopping": False}
    assert await bench.call("harness::stop", session_id="s_unknown") == {"stopping": False}
    assert await bench.record(session_id) == before and len(bench.signals) == 0
    assert await bench.call("harness::stop", session_id=session_id, turn_id=turn_id) == {"stopping": True}


@pytest.mark.requirement("entry.stop.repairs")
async def test_a_stop_without_a_live_turn_repairs_the_session_status(bench):
    await bench.call("session::ensure", session_id="s1")
    await bench.call("session::set-status", session_id="s1", status="working")
    await bench.call("harness::stop", session_id="s1")
    await bench.status.drain()
    assert await status_of(bench, "s1") == ("idle", None)
    await bench.send(session_id="s1")
    await bench.turns.save(replace(await bench.record("s1"), status="failed", result_error="why"))
    await bench.call("session::set-status", session_id="s1", status="working")
    await bench.call("harness::stop", session_id="s1")
    await bench.status.drain()
    assert await status_of(bench, "s1") == ("error", "why")


@pytest.mark.requirement("entry.stop.stream")
async def test_the_stream_of_the_turn_is_aborted_at_the_router(bench):
    aborted = []

    async def abort(request, _):
        aborted.append(request["request_id"])
        return {"aborted": True}

    bench.client.serve(FunctionSpec("router::abort", "Stops a stream.", None, None, "bad"), abort)
    session_id, turn_id = await started(bench)
    await bench.turns.save(replace(await bench.record(session_id), stream_request_id=f"{turn_id}:0"))
    await bench.call("harness::stop", session_id=session_id)
    assert aborted == [f"{turn_id}:0"]


@pytest.mark.requirement("entry.stop.bad")
@pytest.mark.parametrize("data", [{}, {"session_id": 7}, {"session_id": None}, {"session_id": "s", "turn_id": 1}])
async def test_bad_input_names_the_field(bench, data):
    with pytest.raises(BusError) as error:
        await bench.client.call("harness::stop", data)
    assert error.value.matches("harness/invalid_request")
    assert ("`turn_id`" if "turn_id" in data else "`session_id`") in error.value.message


@pytest.mark.requirement("entry.stop.crash")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_after_a_death_at_any_call_of_a_stop_the_turn_is_moved_or_the_stop_unheard(world, tmp_path, after):
    nth, missed = 0, False
    while not missed:
        nth += 1
        path = tmp_path / str(nth)
        path.mkdir()
        async with opened(world, path) as bench:
            session_id, _ = await started(bench)
            bench.bus.cut(nth, after=after)
            stopping = asyncio.ensure_future(stop(bench, session_id))
            try:
                await stopping
            except Cut:
                pass
            missed = bench.bus.cut_missed
            bench = bench.restarted()
            await bench.bring_back()
            record = await bench.record(session_id)
            assert record.status == "running"
            jobs = [(job["turn_id"], job["step"]) for job in await bench.jobs()]
            assert jobs.count((record.turn_id, record.step)) >= 2
    assert nth > 2


async def stop(bench, session_id):
    from iii_contracts.harness.turn import StopRequest
    from iii_kit.bus import Invocation

    return await bench.stopper.stop(StopRequest(session_id=session_id), Invocation("harness::stop"))


@pytest.mark.requirement("entry.status.boot-sweep")
async def test_a_start_repairs_every_session_that_is_said_to_work_and_leaves_live_turns(bench):
    live, _ = await started(bench)
    for session_id in ("s_done", "s_none"):
        await bench.call("session::ensure", session_id=session_id)
    await bench.send(session_id="s_done")
    await bench.turns.save(replace(await bench.record("s_done"), status="cancelled"))
    for session_id in (live, "s_done", "s_none"):
        await bench.call("session::set-status", session_id=session_id, status="working", reason="x")
    await bench.status.sweep()
    assert await status_of(bench, live) == ("working", "x")
    assert await status_of(bench, "s_done") == ("done", "stopped")
    assert await status_of(bench, "s_none") == ("idle", None)
