"""Parked messages: order, taking back, editing, the end of a turn, and deaths at any call of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from iii_contracts.harness.send import SendRequest
from iii_contracts.harness.turn import StopRequest
from iii_harness.entry.points import EntryPoint
from iii_kit.bus import Invocation
from iii_kit.errors import BusError
from iii_kit.world import World
from iii_testing.entry_bench import Cut, EntryBench, opened
from iii_testing.world import Crash

pytestmark = pytest.mark.anyio


@pytest.fixture
async def bench(world, tmp_path):
    async with opened(world, tmp_path) as bench:
        yield bench


async def running(bench: EntryBench, *texts: Any) -> str:
    """A running turn with these messages parked."""
    session_id = (await bench.send("first"))["session_id"]
    for text in texts:
        await bench.send(text, session_id=session_id)
    return session_id


async def parked(bench: EntryBench) -> list[str]:
    rows = sorted(await bench.rows("harness_queue"), key=lambda row: (row["queued_at"], row["id"]))
    return [row["message"]["content"][0]["text"] for row in rows]


def note(text: str) -> dict[str, Any]:
    return {"role": "custom", "custom_type": "note", "content": [{"type": "text", "text": text}], "timestamp": 1}


@pytest.mark.requirement("entry.parked.order")
async def test_parked_messages_keep_the_order_of_their_arrival(bench):
    texts = [f"m{n}" for n in range(20)]
    session_id = await running(bench, *texts)
    assert await parked(bench) == texts
    record = await bench.record(session_id)
    async with bench.locks.hold(session_id):
        await bench.delivery.drain(record)
    assert await bench.texts(session_id) == ["first", *texts]
    assert await bench.rows("harness_queue") == []


@pytest.mark.requirement("entry.parked.room")
async def test_what_one_answer_could_not_bring_back_after_a_restart_is_refused(bench, monkeypatch):
    monkeypatch.setattr("iii_harness.queue_rows.MOST_BYTES", 4000)
    session_id = await running(bench)
    sends = (bench.send("x" * 1000, session_id=session_id) for _ in range(8))
    answers = await asyncio.gather(*sends, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, BusError)]
    assert len(refused) == 5 and all("harness/invalid_request" in str(each) for each in refused)
    assert len(await parked(bench)) == 3
    row = (await bench.rows("harness_queue"))[0]
    with pytest.raises(BusError, match="wait for running turns"):
        await bench.queue.edit(session_id, row["entry_id"], {**row["message"], "note": "x" * 1500})
    async with bench.locks.hold(session_id):
        await bench.delivery.drain(await bench.record(session_id))
    assert (await bench.send("x" * 1000, session_id=session_id))["queued"]


@pytest.mark.requirement("entry.parked.restart")
async def test_order_and_rows_outlive_the_process(bench):
    session_id = await running(bench, "a", "b")
    bench = bench.restarted()
    await bench.send("c", session_id=session_id)
    assert await parked(bench) == ["a", "b", "c"]
    assert [row.entry_id for row in await bench.delivery.parked(session_id)] == [
        row["entry_id"] for row in await bench.rows("harness_queue")
    ]


@pytest.mark.requirement("entry.parked.no-reads")
async def test_a_step_without_parked_messages_asks_nothing_of_the_store(bench):
    session_id = await running(bench)
    record = await bench.record(session_id)
    await bench.delivery.parked(session_id)
    bench.bus.cut(1, after=False)
    assert await bench.delivery.drain(record) is record
    assert await bench.delivery.parked(session_id) == []
    assert bench.bus.cut_missed


@pytest.mark.requirement("entry.parked.root")
async def test_the_last_root_among_drained_messages_becomes_the_root_of_the_turn(bench):
    session_id = await running(bench)
    for root in ("/one", "/two"):
        await bench.send("x", session_id=session_id, options={"metadata": {"fs_scope": {"root": root}}})
    await bench.send("y", session_id=session_id)
    drained = await bench.delivery.drain(await bench.record(session_id))
    assert drained.options.metadata["fs_scope"]["root"] == "/two"


@pytest.mark.requirement("entry.unqueue")
async def test_a_parked_message_can_be_taken_back_once(bench):
    session_id = await running(bench, "a", "b")
    entry_id = (await bench.rows("harness_queue"))[0]["entry_id"]
    for removed in (True, False):
        assert await bench.call("harness::unqueue", session_id=session_id, entry_id=entry_id) == {"removed": removed}
    assert await parked(bench) == ["b"]
    assert await bench.call("harness::unqueue", session_id="s_unknown", entry_id=entry_id) == {"removed": False}


@pytest.mark.requirement("entry.edit")
async def test_an_edit_changes_the_message_and_nothing_else_of_the_row(bench):
    session_id = await running(bench, "a", "b")
    before = await bench.rows("harness_queue")
    answer = await bench.call(
        "harness::edit_queued", session_id=session_id, entry_id=before[0]["entry_id"], message="A"
    )
    assert answer == {"updated": True} and await parked(bench) == ["A", "b"]
    after = await bench.rows("harness_queue")
    assert [{**row, "message": None} for row in after] == [{**row, "message": None} for row in before]
    gone = await bench.call("harness::edit_queued", session_id=session_id, entry_id="e_other", message="A")
    assert gone == {"updated": False}


@pytest.mark.requirement("entry.edit.bad")
@pytest.mark.parametrize(
    ("fn", "data", "says", "code"),
    [
        ("harness::edit_queued", {"entry_id": "e", "message": "x"}, "session_id", "harness/invalid_request"),
        ("harness::edit_queued", {"session_id": "s", "entry_id": 1, "message": "x"}, "entry_id", "harness/invalid"),
        ("harness::edit_queued", {"session_id": "s", "entry_id": "e", "message": ""}, "message", "harness/invalid"),
        (
            "harness::edit_queued",
            {"session_id": "s", "entry_id": "e", "message": {"role": "assistant"}},
            "role",
            "harness/invalid_message_role",
        ),
        ("harness::unqueue", {"session_id": "s"}, "entry_id", "harness/invalid_request"),
        ("harness::unqueue", {"session_id": None, "entry_id": "e"}, "session_id", "harness/invalid_request"),
    ],
)
async def test_bad_input_is_refused_naming_the_field(bench, fn, data, says, code):
    await running(bench, "a")
    rows = await bench.rows("harness_queue")
    with pytest.raises(BusError) as error:
        await bench.client.call(fn, data)
    assert error.value.matches(code) and f"`{says}" in error.value.message.replace("message.role", "role")
    assert await bench.rows("harness_queue") == rows


@pytest.mark.requirement("entry.parked.one-fate")
async def test_a_message_is_taken_back_or_delivered_never_both(bench):
    session_id = await running(bench, *(f"m{n}" for n in range(12)))
    rows = await bench.rows("harness_queue")
    record = await bench.record(session_id)

    async def drain() -> None:
        async with bench.locks.hold(session_id):
            await bench.delivery.drain(record)

    taking = [
        asyncio.ensure_future(bench.call("harness::unqueue", session_id=session_id, entry_id=row["entry_id"]))
        for row in rows
    ]
    await asyncio.gather(drain(), *taking)
    taken = [
        row["message"]["content"][0]["text"] for row, task in zip(rows, taking, strict=True) if task.result()["removed"]
    ]
    assert sorted([*taken, *(await bench.texts(session_id))[1:]]) == sorted(f"m{n}" for n in range(12))
    assert await bench.rows("harness_queue") == []


@pytest.mark.requirement("entry.end.reseeds")
@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_a_message_parked_at_the_end_of_a_turn_is_answered_by_a_new_one(bench, status):
    session_id = await running(bench, "late")
    old = await bench.record(session_id)
    await bench.end(old, status)
    new = await bench.record(session_id)
    assert (new.status, new.step, new.turn_id != old.turn_id) == ("running", 0, True)
    assert new.options == old.options and new.message_preview == "late"
    assert await bench.texts(session_id) == ["first", "late"]
    assert await bench.rows("harness_queue") == []
    assert [job["turn_id"] for job in await bench.jobs()] == [old.turn_id, new.turn_id]


@pytest.mark.requirement("entry.end.no-reseed")
@pytest.mark.parametrize(("status", "message"), [("cancelled", "late"), ("completed", note("late"))])
async def test_a_cancelled_turn_and_custom_messages_seed_nothing(bench, status, message):
    session_id = await running(bench, message)
    await bench.end(await bench.record(session_id), status)
    assert (await bench.record(session_id)).status == status
    assert await bench.texts(session_id) == ["first", "late"]
    assert await bench.rows("harness_queue") == [] and len(await bench.jobs()) == 1


@pytest.mark.requirement("entry.end.race")
async def test_a_message_parked_while_its_turn_ends_is_answered_once(world, tmp_path):
    """The record ends at every moment of a send: whoever notices last seeds the turn, and only one does."""
    for n, moment in enumerate((EntryPoint.BEFORE_PARK, EntryPoint.AFTER_PARK)):
        path = tmp_path / str(n)
        path.mkdir()
        async with opened(world, path) as bench:
            await _end_at(bench, moment)


async def _end_at(bench: EntryBench, moment: EntryPoint) -> None:
    session_id = await running(bench)
    old = await bench.record(session_id)
    ending: list[asyncio.Future[None]] = []

    async def end() -> None:
        async with bench.locks.hold(session_id):
            await bench.end(old, "completed")

    def reach(point: Any) -> None:
        if point is moment and not ending:
            ending.append(asyncio.ensure_future(end()))

    object.__setattr__(bench.delivery, "_world", replace_reach(bench.world, reach))
    answer = await bench.send("late", session_id=session_id)
    await asyncio.gather(*ending)
    record = await bench.record(session_id)
    assert record.status == "running" and record.turn_id != old.turn_id
    assert answer["queued"] and answer["turn_id"] in (old.turn_id, record.turn_id)
    assert len(await bench.jobs()) == 2
    await bench.delivery.drain(record)
    assert await bench.texts(session_id) == ["first", "late"] and await bench.rows("harness_queue") == []


@pytest.mark.requirement("entry.end.race")
@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
async def test_a_message_stored_behind_the_last_look_of_an_ending_seeds_its_own_turn(bench, monkeypatch, status):
    session_id = await running(bench)
    old = await bench.record(session_id)
    store = bench.delivery._perform

    async def stored_then_ended(calls: Any, *, needed: int) -> None:
        monkeypatch.undo()
        await store(calls, needed=needed)
        async with bench.locks.hold(session_id):
            await bench.end(old, status)

    monkeypatch.setattr(bench.delivery, "_perform", stored_then_ended)
    answer = await bench.send("late", session_id=session_id)
    record = await bench.record(session_id)
    assert answer == {"session_id": session_id, "turn_id": record.turn_id, "accepted": True, "queued": True}
    assert record.turn_id != old.turn_id and [job["turn_id"] for job in await bench.jobs()][-1] == record.turn_id
    await bench.delivery.drain(record)
    assert await bench.texts(session_id) == ["first", "late"] and await bench.rows("harness_queue") == []


def replace_reach(world: Any, reach: Any) -> Any:
    return World(world.clock, world.ids, world.random, reach)


@pytest.mark.requirement("entry.end.crash")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_death_at_any_call_of_an_ending_loses_and_repeats_nothing(world, tmp_path, after):
    nth, missed = 0, False
    while not missed:
        nth += 1
        path = tmp_path / str(nth)
        path.mkdir()
        async with opened(world, path) as bench:
            missed = await _cut_ending(bench, nth, after=after)
    assert nth > 5


async def _cut_ending(bench: EntryBench, nth: int, *, after: bool) -> bool:
    session_id = await running(bench, "a", "b")
    old = await bench.record(session_id)
    bench.bus.cut(nth, after=after)
    try:
        await bench.end(old, "completed")
    except Cut:
        pass
    missed = bench.bus.cut_missed
    bench = bench.restarted()
    await bench.bring_back()
    record = await bench.record(session_id)
    if record.turn_id == old.turn_id:
        await bench.end(record, "completed")
        record = await bench.record(session_id)
    assert record.status == "running" and record.turn_id != old.turn_id
    assert (record.turn_id, 0) in {(job["turn_id"], job["step"]) for job in await bench.jobs()}
    await bench.delivery.drain(record)
    assert await bench.texts(session_id) == ["first", "a", "b"]
    assert await bench.rows("harness_queue") == []
    return missed


@pytest.mark.requirement("entry.points")
async def test_every_crash_point_of_the_entry_is_reached_and_survived(world, tmp_path):
    """A life that passes every point, cut at each of them; what comes back is whole."""
    async with opened(world, tmp_path) as bench:
        await _life(bench)
    assert {point for point in world.points.reached if isinstance(point, EntryPoint)} == set(EntryPoint)
    for point in EntryPoint:
        path = tmp_path / point.name
        path.mkdir()
        async with opened(world, path) as bench:
            world.points.crash_at(1, point)
            with pytest.raises(Crash):
                await _life(bench)
            bench = bench.restarted()
            await bench.bring_back()
            for row in await bench.rows("harness_turn"):
                record = await bench.record(row["session_id"])
                jobs = {(job["turn_id"], job["step"]) for job in await bench.jobs()}
                assert record.status != "running" or (record.turn_id, record.step) in jobs


async def _life(bench: EntryBench) -> None:
    said = Invocation("")

    async def say(text: str, session_id: str | None = None) -> str:
        request = SendRequest(message=text, model="m", session_id=session_id)
        return (await bench.sender.send(request, said))["session_id"]

    session_id = await say("one")
    await say("two", session_id)
    await bench.delivery.drain(await bench.record(session_id))
    await say("three", session_id)
    await bench.end(await bench.record(session_id), "completed")
    await bench.sweeper.redrive(whatever_age=True)
    record = await bench.record(session_id)
    await bench.turns.save(replace(record, status="awaiting_functions"))
    await say("four", session_id)
    await bench.stopper.stop(StopRequest(session_id=session_id), said)
