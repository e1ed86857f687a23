"""Trace context and baggage travel with calls, and with what a transaction sends (engine spec 7, 21.11)."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import baggage, trace

from iii_kit.bus import Call, Invocation, Opts, TxHandler
from iii_kit.storage import Tx
from iii_kit.trace import Carrier, hidden, received, tagged
from iii_testing.buses import Wire
from iii_testing.waiting import until

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def seen(invocation: Invocation) -> dict[str, Any]:
    span = trace.get_current_span().get_span_context()
    return {
        "trace": trace.format_trace_id(span.trace_id) if span.is_valid else None,
        "tag": baggage.get_baggage("iii.session.id"),
        "traceparent": bool(invocation.traceparent),
        "baggage": invocation.baggage,
    }


@pytest.mark.requirement("kit.bus.traces")
async def test_trace_and_baggage_reach_the_second_hop(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()

    async def look(_: Any, invocation: Invocation) -> Any:
        return seen(invocation)

    last = await wire.serve(bus, look)

    async def hop(data: Any, invocation: Invocation) -> Any:
        return {"here": seen(invocation), "next": await bus.call(last.id, {})}

    first = await wire.serve(bus, hop)
    with received(Carrier(PARENT)), tagged({"iii.session.id": "s 1"}):
        answer = await caller.call(first.id, {})
    for place in (answer["here"], answer["next"]):
        assert place["trace"] == PARENT.split("-")[1]
        assert place["tag"] == "s 1"
        assert place["traceparent"]
        assert "iii.session.id=s" in place["baggage"]
    untraced = await caller.call(first.id, {})
    for place in (untraced["here"], untraced["next"]):
        assert (place["trace"], place["tag"]) == (None, None)


@pytest.mark.requirement("kit.bus.traces")
async def test_the_calls_of_a_transaction_carry_its_trace(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    heard: list[Any] = []

    async def hear(_: Any, invocation: Invocation) -> Any:
        heard.append(seen(invocation))

    listener = await wire.serve(bus, hear)

    def run(tx: Tx, _: Any, __: Invocation) -> Any:
        tx.after_commit(Call(listener.id, {}, kind="void"))
        return {}

    fn = await wire.serve(bus, TxHandler(run))
    with received(Carrier(PARENT)), tagged({"iii.session.id": "s1"}):
        await caller.call(fn.id, {})
    await until(lambda: heard)
    assert heard[0]["trace"] == PARENT.split("-")[1]
    assert heard[0]["tag"] == "s1"


@pytest.mark.requirement("kit.bus.hidden")
async def test_bookkeeping_is_hidden_where_somebody_traces_and_carries_nothing_where_nobody_does(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()

    async def look(_: Any, __: Invocation) -> Any:
        return baggage.get_baggage("iii.tag.hidden")

    fn = await wire.serve(bus, look)
    mine = Opts(hidden="harness state")
    expected = "harness state" if wire.over_socket else None  # nobody records spans of calls inside one process
    with received(Carrier(PARENT)):
        assert await caller.call(fn.id, {}, opts=mine) == expected
        assert await caller.sequence([Call(fn.id, {}, opts=mine), Call(fn.id, {})]) == [expected, None]
        assert hidden(None) is hidden(None)
    assert await caller.call(fn.id, {}, opts=mine) is None
    assert hidden("harness state") is hidden(None)
