"""Transactions, sequences and queues on a bus (design, "`Bus.sequence`"; engine spec 6.2, siblings 9)."""

from __future__ import annotations

from typing import Any

import pytest

from iii_kit.bus import Bus, Call, Invocation, ReadHandler, TxHandler
from iii_kit.clients.queue import QueueClient
from iii_kit.errors import BusError, CodedError, PartialSequence, Unencodable
from iii_kit.sdk_bus import SdkBus, SdkOptions
from iii_kit.storage import Reader, Tx
from iii_kit.world import SystemClock
from iii_testing.buses import Wire, function, unique
from iii_testing.waiting import until


async def notes(wire: Wire) -> list[str]:
    return await wire.store.read(lambda db: [row[0] for row in db.execute("SELECT text FROM notes ORDER BY rowid")])


def note(tx: Tx, data: Any, _: Invocation) -> Any:
    if data["text"] == "refused":
        tx.execute("INSERT INTO notes VALUES('half')")
        raise CodedError("demo/refused", "not this one")
    tx.execute("INSERT OR IGNORE INTO notes VALUES(?)", (data["text"],))
    return {"noted": data["text"]}


async def serve_note(wire: Wire, bus: Bus) -> str:
    return (await wire.serve(bus, TxHandler(note))).id


@pytest.mark.requirement("kit.bus.tx")
async def test_a_transaction_keeps_all_or_nothing_and_is_seen_once_answered(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    fn = await serve_note(wire, bus)

    def count(db: Reader, _: Any, __: Invocation) -> Any:
        return {"count": db.execute("SELECT count(*) FROM notes").fetchone()[0]}  # type: ignore[index]

    for bounded in (True, False):
        reading = await wire.serve(bus, ReadHandler(count, bounded=bounded))
        assert await caller.call(fn, {"text": str(bounded)}) == {"noted": str(bounded)}
        with pytest.raises(BusError) as refused:
            await caller.call(fn, {"text": "refused"})
        assert refused.value.code == "demo/refused"
        assert await caller.call(reading.id, {}) == {"count": 1 if bounded else 2}


@pytest.mark.requirement("kit.bus.tx")
async def test_the_calls_of_a_transaction_leave_after_its_commit_and_never_without_it(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    heard: list[Any] = []

    async def hear(data: Any, _: Invocation) -> Any:
        heard.append((data["n"], await notes(wire)))

    listener = await wire.serve(bus, hear)

    def telling(tx: Tx, data: Any, invocation: Invocation) -> Any:
        tx.after_commit(Call(listener.id, {"n": data["text"]}, kind="void"))
        return note(tx, data, invocation)

    fn = (await wire.serve(bus, TxHandler(telling))).id
    with pytest.raises(BusError):
        await caller.call(fn, {"text": "refused"})
    await caller.call(fn, {"text": "kept"})
    await until(lambda: heard)
    assert heard == [("kept", ["kept"])]


@pytest.mark.requirement("kit.bus.sequence")
async def test_a_sequence_runs_in_order_with_results_in_order(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    fn, heard = await serve_note(wire, bus), []

    async def hear(data: Any, _: Invocation) -> Any:
        heard.append((data["n"], await notes(wire)))
        return {"heard": data["n"]}

    listener = await wire.serve(bus, hear)
    results = await caller.sequence(
        [
            Call(fn, {"text": "a"}),
            Call(fn, {"text": "b"}),
            Call(listener.id, {"n": 1}),
            Call(fn, {"text": "c"}, kind="void"),
            Call(listener.id, {"n": 2}),
        ]
    )
    assert results == [{"noted": "a"}, {"noted": "b"}, {"heard": 1}, None, {"heard": 2}]
    assert heard[0] == (1, ["a", "b"])
    await until(lambda: heard)
    assert await caller.sequence([]) == []


@pytest.mark.requirement("kit.bus.sequence_partial")
async def test_a_sequence_stops_at_a_failure_with_its_prefix_done(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    fn = await serve_note(wire, bus)
    with pytest.raises(PartialSequence) as partial:
        await caller.sequence([Call(fn, {"text": text}) for text in ("a", "b", "refused", "c")])
    assert partial.value.done == [{"noted": "a"}, {"noted": "b"}]
    assert partial.value.cause.code == "demo/refused"
    assert partial.value.code == "demo/refused"
    assert await notes(wire) == ["a", "b"]
    with pytest.raises(PartialSequence) as missing:
        await caller.sequence([Call(fn, {"text": "d"}), Call(unique(), {})])
    assert (missing.value.done, missing.value.cause.code) == ([{"noted": "d"}], "function_not_found")


@pytest.mark.requirement("kit.bus.sequence_partial")
async def test_a_value_that_cannot_be_encoded_stops_a_sequence_and_what_is_done_is_told(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    fn = await serve_note(wire, bus)
    with pytest.raises(PartialSequence) as stopped:
        await caller.sequence([Call(fn, {"text": "a"}), Call(fn, {"text": float("nan")}), Call(fn, {"text": "b"})])
    assert isinstance(stopped.value.cause, Unencodable)
    assert [{"noted": text} for text in await notes(wire)] == stopped.value.done


@pytest.mark.requirement("kit.bus.sequence_commit")
async def test_a_sequence_of_transactions_is_one_commit_in_process(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    fn = await serve_note(wire, bus)
    before = wire.store.commits  # type: ignore[attr-defined]
    await caller.sequence([Call(fn, {"text": str(n)}) for n in range(5)])
    assert wire.store.commits - before == (1 if wire.kind == "local" else 5)  # type: ignore[attr-defined]


@pytest.mark.requirement("kit.bus.enqueue")
async def test_an_enqueued_call_runs_at_least_once_and_its_receipt_is_given_at_once(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    queue, ran = unique("queue"), []

    async def run(data: Any, invocation: Invocation) -> Any:
        ran.append((data["n"], invocation.metadata))
        return {}

    spec = await wire.serve(bus, run)
    await QueueClient(caller, SystemClock()).define(queue, {"type": "fifo", "message_group_field": "group"})
    receipts = [await caller.enqueue(queue, spec.id, {"group": "g", "n": n}) for n in range(2)]
    receipts += await caller.sequence(
        [Call(spec.id, {"group": "g", "n": n}, kind="enqueue", queue=queue) for n in (2, 3)]
    )
    assert len(set(receipts)) == 4
    assert all(isinstance(receipt, str) for receipt in receipts)
    await until(lambda: len(ran) >= 4)
    assert ran == [(n, None) for n in range(4)]
    with pytest.raises(BusError) as unknown:
        await caller.enqueue(unique("queue"), spec.id, {"group": "g"})
    assert unknown.value.code == "enqueue_error"


@pytest.mark.requirement("kit.bus.tx_needs_store")
async def test_a_transaction_on_a_bus_without_a_store_is_a_mistake_that_is_told(wire: Wire) -> None:
    if not wire.over_socket:
        pytest.skip("a bus in process always has the engine's store")
    bus = SdkBus(SdkOptions(unique("worker"), url=wire.url))
    spec = function()
    with pytest.raises(ValueError, match="runs inside the store, and this bus has none"):
        bus.serve(spec, TxHandler(note))
    await bus.close()
