"""Calls over sockets: order, answers, exact values, frames that are no messages, peers that do not read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import connect

from iii_contracts.spec import FunctionSpec
from iii_embedded import EngineSettings
from iii_kit.bus import Invocation
from iii_kit.errors import BusError, CodedError
from iii_testing.embedded import Embedded, embedded
from iii_testing.waiting import until
from iii_testing.wire_peer import Failed, wire_peers

pytestmark = pytest.mark.anyio

ANY = FunctionSpec("t::any", "of a test", None, None, "t/invalid")


@asynccontextmanager
async def listening(**options: Any) -> AsyncGenerator[tuple[Embedded, Any]]:
    async with embedded(listening=True, **options) as stack, wire_peers(stack.url) as connecting:
        yield stack, connecting


async def instant(owner: Any, calls: int) -> None:
    """Answer the next calls as soon as they arrive."""
    for n in range(calls):
        frame = await owner.expect("invokefunction", count=n + 1)
        await owner.answer(frame, result=frame["data"])


@pytest.mark.slow
@pytest.mark.requirement("engine.calls.no_answer_lost")
async def test_none_of_twenty_thousand_instant_answers_is_lost() -> None:
    calls = 20_000
    async with embedded(listening=True) as stack:
        owner, caller = [await connect(stack.url, max_size=None, compression=None) for _ in range(2)]
        await owner.send(json.dumps({"type": "registerfunction", "id": "t::instant"}))
        await owner.send(json.dumps({"type": "invokefunction", "function_id": "engine::workers::register", "data": {}}))
        await until(lambda: stack.engine.registry.find("default", "t::instant"))
        taken: list[int] = []

        async def answer() -> None:
            async for raw in owner:
                frame = json.loads(raw)
                if frame["type"] == "invokefunction":
                    taken.append(frame["data"]["n"])
                    reply = {"type": "invocationresult", "function_id": "f", "result": frame["data"]["n"]}
                    await owner.send(json.dumps({**reply, "invocation_id": frame["invocation_id"]}))

        async def call() -> None:
            for n in range(calls):
                frame = {"type": "invokefunction", "function_id": "t::instant", "data": {"n": n}}
                await caller.send(json.dumps({**frame, "invocation_id": f"00000000-0000-4000-8000-{n:012d}"}))

        working = [asyncio.ensure_future(answer()), asyncio.ensure_future(call())]
        results: list[int] = []
        async with asyncio.timeout(90):
            while len(results) < calls:
                frame = json.loads(await caller.recv())
                if frame["type"] == "invocationresult":
                    results.append(frame["result"])
        assert results == taken == list(range(calls))
        await owner.close()
        await caller.close()
        await asyncio.gather(*working)


@pytest.mark.requirement("engine.calls.order")
async def test_void_calls_and_reads_of_one_connection_keep_their_order() -> None:
    async with listening() as (_, connecting):
        peer, owner = await connecting("peer"), await connecting("owner")
        await owner.register("t::void")
        place = {"scope": "s", "key": "k"}
        for n in range(200):
            await peer.start("t::void", {"n": n}, action={"type": "void"})
            await peer.start("state::set", {**place, "value": n}, action={"type": "void"})
            if n % 10 == 0:
                assert await peer.call("state::get", place) == n
        await owner.expect("invokefunction", count=200)
        assert [frame["data"]["n"] for frame in owner.seen("invokefunction")] == list(range(200))


@pytest.mark.requirement("engine.calls.own_answers")
async def test_an_answer_counts_only_from_the_worker_that_executes_the_call() -> None:
    async with listening() as (_, connecting):
        caller, owner, stranger = await connecting(), await connecting(), await connecting()
        await owner.register("t::slow")
        id_ = await caller.start("t::slow", {})
        frame = await owner.expect("invokefunction")
        await stranger.answer(frame, result="forged")
        await stranger.settle()
        await owner.answer(frame, result="true")
        assert await caller.outcome(id_) == "true"


@pytest.mark.requirement("engine.calls.id_in_use")
async def test_an_id_of_an_open_call_is_refused_and_the_open_call_goes_on() -> None:
    async with listening() as (_, connecting):
        caller, owner = await connecting(), await connecting()
        await owner.register("t::slow")
        id_ = await caller.start("t::slow", {"first": True})
        frame = await owner.expect("invokefunction")
        again = {"type": "invokefunction", "invocation_id": id_.upper(), "function_id": "t::slow", "data": {}}
        await caller.send(again)
        refused = await caller.expect("invocationresult", invocation_id=id_)
        assert refused["error"]["code"] == "invocation_error"
        await owner.answer(frame, result=1)
        assert (await caller.expect("invocationresult", invocation_id=id_, count=2))["result"] == 1
        assert len(owner.seen("invokefunction")) == 1


@pytest.mark.requirement("engine.frames.exact_values")
async def test_values_pass_through_the_engine_as_they_were_written() -> None:
    data = '{"b":1e2,"a":12345678901234567890123456789,"f":0.1000000000000000055511151231257827,"deep":[1.10,-0]}'
    async with listening() as (_, connecting):
        caller, owner = await connecting(), await connecting()
        await owner.register("t::exact")
        frame = {"type": "invokefunction", "invocation_id": "11111111-1111-4111-8111-111111111111"}
        text = json.dumps({**frame, "function_id": "t::exact", "data": "DATA"}).replace('"DATA"', data)
        await caller.send(text)
        arrived = await owner.expect("invokefunction")
        stamp = f',"_caller_worker_id":"{caller.id}"}}'
        assert (data[:-1] + stamp).encode() in owner.raw[-1]
        reply = json.dumps({"type": "invocationresult", **{k: arrived[k] for k in ("invocation_id", "function_id")}})
        await owner.send(reply[:-1] + f',"result":{data}}}')
        await caller.outcome(arrived["invocation_id"])
        assert data.encode() in caller.raw[-1]


@pytest.mark.requirement("engine.frames.exact_values")
async def test_numbers_of_any_size_survive_a_function_of_this_process() -> None:
    numbers = [2**53 + 1, 2**64 - 1, -(2**63), 10**40, -(10**40), 0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0]
    async with listening() as (stack, connecting):

        async def echo(data: Any, _: Invocation) -> Any:
            return data

        stack.attach("w").serve(ANY, echo)
        peer = await connecting()
        result = await peer.call("t::any", {"numbers": numbers})
        assert result == {"numbers": numbers}
        assert [type(number) for number in result["numbers"]] == [type(number) for number in numbers]


@pytest.mark.requirement("engine.frames.unreadable")
@pytest.mark.parametrize(
    "data",
    ["NaN", "Infinity", "-Infinity", "1e400", "-1e999", "[1e400]", "1" * 400, '"\\ud800"', "01", "[1,]", "'a'"],
)
async def test_a_frame_with_a_value_that_is_no_json_is_ignored(data: str) -> None:
    async with listening() as (_, connecting):
        peer = await connecting()
        call = '{"type":"invokefunction","invocation_id":"%s","function_id":"engine::functions::list","data":%s}'
        await peer.send(call % ("11111111-1111-4111-8111-111111111111", data))
        await peer.settle()
        assert not peer.seen("invocationresult", invocation_id="11111111-1111-4111-8111-111111111111")
        assert "functions" in await peer.call("engine::functions::list")


@pytest.mark.requirement("engine.frames.unreadable")
@pytest.mark.parametrize(
    "frame",
    [
        b"\xef\xbb\xbf{}",
        b'{"type":"ping"}{"type":"ping"}',
        b'{"type":"invokefunction","function_id":"x","data":"\xff"}',
        b'{"type":"invokefunction","function_id":"x","data":{},"action":{"type":"enqueue"}}',
        b'{"type":"invokefunction","function_id":"x","data":{},"action":{"type":"other"}}',
        b'{"type":"invokefunction","function_id":"x","data":{},"invocation_id":"not-a-uuid"}',
        b'{"type":"invokefunction","function_id":"x","data":{},"invocation_id":7}',
        b'{"type":"invokefunction","function_id":"x","data":{},"namespace":7}',
        b'{"type":"invokefunction","function_id":"x","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=["bom", "two", "utf-8", "no queue", "action", "no uuid", "id type", "namespace type", "nesting"],
)
async def test_a_frame_that_is_no_message_is_ignored_and_the_connection_goes_on(frame: bytes) -> None:
    async with listening() as (_, connecting):
        peer = await connecting()
        before = len(peer.frames)
        await peer.send(frame)
        await peer.settle()
        assert [seen["type"] for seen in peer.frames[before:]] == ["pong"]


@pytest.mark.requirement("engine.frames.nesting")
async def test_a_hundred_and_twenty_seven_levels_pass() -> None:
    async with listening() as (_, connecting):
        caller, owner = await connecting(), await connecting()
        await owner.register("t::deep")
        deep: Any = []
        for _ in range(125):
            deep = [deep]
        id_ = await caller.start("t::deep", deep)
        frame = await owner.expect("invokefunction")
        await owner.answer(frame, result=frame["data"])
        assert await caller.outcome(id_) == deep


@pytest.mark.requirement("engine.frames.telemetry")
@pytest.mark.parametrize("path", ["/", "/otel"])
async def test_telemetry_is_taken_and_never_answered(path: str) -> None:
    async with listening() as (stack, connecting):
        async with connect(stack.url + path, compression=None) as socket:
            for prefix in (b"OTLP", b"MTRC", b"LOGS"):
                await socket.send(prefix + b'{"resourceSpans":[]}')
            if path == "/":
                assert json.loads(await socket.recv())["type"] == "workerregistered"
            await (await socket.ping())
            assert socket.close_code is None
        peer = await connecting()
        workers = await peer.call("engine::workers::list")
        assert all(row["runtime"] == "engine" for row in workers["workers"])


@pytest.mark.requirement("engine.outbox.bounded")
async def test_a_peer_that_does_not_read_is_closed_and_hurts_nobody_else() -> None:
    settings = EngineSettings(port=0, outgoing_limit=20_000_000)
    async with listening(settings=settings) as (stack, connecting):
        caller, healthy = await connecting(), await connecting()
        await healthy.register("t::healthy")
        slow = await connect(stack.url, compression=None, max_size=None, max_queue=1)
        await slow.send(json.dumps({"type": "registerfunction", "id": "t::slow"}))
        await slow.send(json.dumps({"type": "invokefunction", "function_id": "engine::workers::register", "data": {}}))
        await until(lambda: stack.engine.registry.find("default", "t::slow"))
        call = await caller.start("t::slow", {"waits": True})
        async with asyncio.timeout(30):
            while not caller.seen("invocationresult", invocation_id=call):
                await caller.start("t::slow", "x" * 1_000_000, action={"type": "void"})
                healthy_call = await caller.start("t::healthy", {})
                frame = await healthy.expect("invokefunction", invocation_id=healthy_call)
                await healthy.answer(frame, result=True)
                assert await caller.outcome(healthy_call) is True
        with pytest.raises(Failed) as stopped:
            await caller.outcome(call)
        assert stopped.value.code == "invocation_stopped"
        slow.transport.abort()


@pytest.mark.requirement("engine.local.errors_on_the_wire")
async def test_errors_of_functions_of_this_process_keep_code_and_text() -> None:
    async with listening() as (stack, connecting):

        async def fail(data: Any, _: Invocation) -> Any:
            kinds = {"coded": CodedError("t/no", "because"), "bus": BusError("NO", "text"), "plain": ValueError("oops")}
            raise kinds[data["kind"]]

        stack.attach("w").serve(ANY, fail)
        peer = await connecting()
        errors = {}
        for kind in ("coded", "bus", "plain"):
            with pytest.raises(Failed) as caught:
                await peer.call("t::any", {"kind": kind})
            errors[kind] = (caught.value.code, caught.value.message)
        assert errors == {
            "coded": ("t/no", "t/no: because"),
            "bus": ("NO", "text"),
            "plain": ("invocation_failed", "oops"),
        }


@pytest.mark.requirement("engine.calls.not_invokable")
async def test_a_function_behind_a_url_is_listed_and_cannot_be_called() -> None:
    async with listening() as (_, connecting):
        peer = await connecting()
        await peer.register("t::http", invocation={"url": "https://example.invalid/"})
        with pytest.raises(Failed) as caught:
            await peer.call("t::http")
        assert caught.value.code == "function_not_invokable"
        assert (await peer.call("engine::functions::info", {"function_id": "t::http"}))["function_id"] == "t::http"
