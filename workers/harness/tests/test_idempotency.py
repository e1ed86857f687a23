"""One send per key: concurrent sends, repeats, and repeats after a death at any call."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from iii_contracts.harness.send import SendRequest
from iii_harness.entry.idempotency import entry_id_of
from iii_kit.bus import Invocation
from iii_kit.errors import BusError, CodedError
from iii_testing.entry_bench import Cut, EntryBench, opened

pytestmark = pytest.mark.anyio

SAID = Invocation("harness::send")


@pytest.fixture
async def bench(world, tmp_path):
    async with opened(world, tmp_path) as bench:
        yield bench


@pytest.mark.requirement("entry.idempotency.concurrent")
@pytest.mark.parametrize("lag", [0, 50])
async def test_concurrent_sends_with_one_key_give_one_turn(bench, lag):
    bench.bus.lag = lag
    answers = await asyncio.gather(*(bench.send(idempotency_key="k") for _ in range(8)))
    assert len({(a["session_id"], a["turn_id"]) for a in answers}) == 1
    assert sorted(a.get("deduplicated", False) for a in answers) == [False, *[True] * 7]
    assert await bench.texts(answers[0]["session_id"]) == ["hello"]
    assert len(await bench.jobs()) == 1


@pytest.mark.requirement("entry.idempotency.rows")
async def test_the_row_names_what_a_repeat_needs_and_says_that_it_was_delivered(bench, world):
    answer = await bench.send(idempotency_key="a key")
    entry_id = entry_id_of("a key")
    assert await bench.rows("harness_idem") == [
        {
            "key": "a key",
            "session_id": answer["session_id"],
            "turn_id": answer["turn_id"],
            "entry_id": entry_id,
            "ts": world.clock.now_ms(),
            "delivered": True,
        }
    ]
    items = (await bench.call("session::messages", session_id=answer["session_id"]))["messages"]
    assert items[0]["entry_id"] == entry_id


@pytest.mark.requirement("entry.idempotency.parked")
async def test_a_keyed_message_that_is_parked_is_parked_once_under_its_entry_id(bench):
    session_id = (await bench.send())["session_id"]
    for again in (False, True):
        answer = await bench.send("more", session_id=session_id, idempotency_key="k")
        assert answer.get("deduplicated", False) is again
    [row] = await bench.rows("harness_queue")
    assert (row["id"], row["entry_id"]) == ("e_idem_k", "e_idem_k")


@pytest.mark.requirement("entry.idempotency.expires")
async def test_a_key_is_forgotten_after_its_time_and_its_row_deleted_once_an_hour(bench, world):
    session_id = (await bench.send(idempotency_key="k"))["session_id"]
    await bench.end(await bench.record(session_id), "completed")
    await bench.call("harness::sweep-pending")
    world.manual_clock.skip(86_400.5)
    again = await bench.send(idempotency_key="k")
    assert "deduplicated" not in again and again["session_id"] != session_id
    await bench.send(idempotency_key="old")
    world.manual_clock.skip(86_401)
    await bench.send(idempotency_key="young")
    await bench.call("harness::sweep-pending")
    assert [row["key"] for row in await bench.rows("harness_idem")] == ["young"]


@pytest.mark.requirement("entry.idempotency.entry-id")
@given(st.text(max_size=6), st.text(max_size=6))
def test_entry_ids_of_different_keys_differ_and_are_safe(one, other):
    ids = [entry_id_of(key) for key in (one, other)]
    assert (ids[0] == ids[1]) == (one == other)
    assert all(char.isascii() and (char.isalnum() or char in "_-") for char in "".join(ids))


async def _prepared(bench: EntryBench, scene: str) -> dict[str, str]:
    """The session that a scene starts from, as fields of the send."""
    if scene == "new":
        return {}
    if scene == "named":
        return {"session_id": "s_named"}
    session_id = (await bench.send("first", session_id="s_old"))["session_id"]
    record = await bench.record(session_id)
    if scene == "ended":
        await bench.end(record, "completed")
    if scene == "waiting":
        await bench.turns.save(replace(record, status="awaiting_functions"))
    return {"session_id": session_id}


@pytest.mark.requirement("entry.idempotency.crash")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("scene", ["new", "named", "ended", "running", "waiting"])
async def test_a_repeat_after_a_death_at_any_call_delivers_what_is_missing_once(world, tmp_path, scene, after):
    nth, missed = 0, False
    while not missed:
        nth += 1
        path = tmp_path / str(nth)
        path.mkdir()
        async with opened(world, path) as bench:
            fields = await _prepared(bench, scene)
            missed = await _cut_and_repeat(bench, fields, nth, after=after)
    assert nth > 4


async def _cut_and_repeat(bench: EntryBench, fields: dict[str, str], nth: int, *, after: bool) -> bool:
    request = SendRequest(message="the one", model="m", idempotency_key="k", **fields)
    bench.bus.cut(nth, after=after)
    try:
        await bench.sender.send(request, SAID)
    except Cut:
        pass
    missed = bench.bus.cut_missed
    bench = bench.restarted()
    await bench.bring_back()
    answer = await bench.send("the one", idempotency_key="k", **fields)
    again = await bench.send("the one", idempotency_key="k", **fields)
    assert again["deduplicated"] and again["session_id"] == answer["session_id"]
    session_id = answer["session_id"]
    parked = [row["message"]["content"][0]["text"] for row in await bench.rows("harness_queue")]
    assert [*await bench.texts(session_id), *parked].count("the one") == 1
    record = await bench.record(session_id)
    assert record.turn_id == again["turn_id"] and not record.terminal
    jobs = {(job["turn_id"], job["step"]) for job in await bench.jobs()}
    assert record.status != "running" or (record.turn_id, record.step) in jobs
    assert len((await bench.call("session::list"))["sessions"]) == 1
    assert len(await bench.rows("harness_idem")) == 1
    return missed


@pytest.mark.requirement("entry.idempotency.drained")
async def test_a_repeat_finds_its_message_taken_by_a_step_that_has_not_asked_yet(bench):
    session_id = (await bench.send("first"))["session_id"]
    record = await bench.record(session_id)
    await bench.send("the one", idempotency_key="k", session_id=session_id)
    (row,) = await bench.rows("harness_idem")
    undelivered = {name: value for name, value in row.items() if name != "delivered"} | {"turn_id": "t_never_seeded"}
    await bench.call("state::set", scope="harness_idem", key="k", value=undelivered)
    bench = bench.restarted()
    await bench.delivery.drain(record)
    answer = await bench.send("the one", idempotency_key="k", session_id=session_id)
    assert answer["deduplicated"] and answer["turn_id"] == record.turn_id
    assert await bench.rows("harness_queue") == [], "it would be answered a second time"


@pytest.mark.requirement("entry.send.failure")
@pytest.mark.parametrize("scene", ["new", "ended", "running", "waiting"])
async def test_a_call_that_fails_is_told_by_code_and_a_repeat_delivers_once(world, tmp_path, scene):
    nth, missed = 0, False
    while not missed:
        nth += 1
        path = tmp_path / str(nth)
        path.mkdir()
        async with opened(world, path) as bench:
            fields = await _prepared(bench, scene)
            missed = await _fail_and_repeat(bench, fields, nth)
    assert nth > 4


async def _fail_and_repeat(bench: EntryBench, fields: dict[str, str], nth: int) -> bool:
    bench.bus.fail(nth, BusError("SET_ERROR", "disk full"))
    request = SendRequest(message="the one", model="m", idempotency_key="k", **fields)
    sending = asyncio.ensure_future(bench.sender.send(request, SAID))
    while not sending.done():
        await asyncio.sleep(0.001)
        await bench.world.advance(0.1)
    missed = bench.bus.disarm()
    if (failed := sending.exception()) is not None:
        assert isinstance(failed, CodedError) and failed.code in ("harness/state", "harness/dependency")
        assert "disk full" in failed.text
    answer = await bench.send("the one", idempotency_key="k", **fields)
    if failed is not None or missed:
        assert ("deduplicated" in answer) == (failed is None)
    session_id = answer["session_id"]
    parked = [row["message"]["content"][0]["text"] for row in await bench.rows("harness_queue")]
    assert [*await bench.texts(session_id), *parked].count("the one") == 1
    record = await bench.record(session_id)
    assert record.turn_id == answer["turn_id"] and not record.terminal
    return missed
