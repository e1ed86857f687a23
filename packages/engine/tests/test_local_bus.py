"""The bus in process: order, commits of sequences, what rolls back, cancellation, context, a real SDK beside it."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry import context as otel
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from iii_contracts.model import Wire
from iii_contracts.spec import FunctionSpec
from iii_embedded import LocalBus
from iii_kit.bus import Call, Invocation, Opts, ReadHandler, TxHandler
from iii_kit.errors import BusError, CodedError, PartialSequence
from iii_kit.storage import Reader, Tx
from iii_store import Family
from iii_testing.embedded import Embedded, embedded
from iii_testing.waiting import settle, until
from iii_testing.wire_peer import wire_peers

pytestmark = pytest.mark.anyio

FAMILY = Family("rows", (("CREATE TABLE rows(key TEXT PRIMARY KEY, value INTEGER NOT NULL)",),))

UNSAYABLE = 1_000_000
"""A value whose result is no JSON."""


class Put(Wire):
    """A row."""

    key: str
    value: int


PUT = FunctionSpec("t::put", "of a test", Put, None, "t/invalid")
GET = FunctionSpec("t::get", "of a test", None, None, "t/invalid")
SCAN = FunctionSpec("t::scan", "of a test", None, None, "t/invalid")
NOTE = FunctionSpec("t::note", "of a test", None, None, "t/invalid")


class Rows:
    """A worker with a table: `put` fails below zero, reads, and `note`, which keeps the events."""

    def __init__(self, bus: LocalBus) -> None:
        self.noted: list[Any] = []
        bus.serve(PUT, TxHandler(self._put))
        bus.serve(GET, ReadHandler(self._get, bounded=True))
        bus.serve(SCAN, ReadHandler(self._get))
        bus.serve(NOTE, self._note)

    def _put(self, tx: Tx, row: Put, call: Invocation) -> Any:
        tx.execute("INSERT OR REPLACE INTO rows VALUES(?, ?)", (row.key, row.value))
        tx.after_commit(Call("t::note", {"put": row.key, "value": row.value}, "void"))
        if row.value < 0:
            raise CodedError("t/negative", f"{row.value}")
        return float("nan") if row.value == UNSAYABLE else {"put": row.value}

    def _get(self, reader: Reader, data: Any, _: Invocation) -> Any:
        row = reader.execute("SELECT value FROM rows WHERE key = ?", (data["key"],)).fetchone()
        return None if row is None else row[0]

    async def _note(self, data: Any, call: Invocation) -> None:
        self.noted.append((data, call.caller, call.traceparent, call.baggage))


@asynccontextmanager
async def rows() -> AsyncGenerator[tuple[Embedded, LocalBus, Rows]]:
    async with embedded(families=[FAMILY], listening=True) as stack:
        served = Rows(stack.attach("rows"))
        yield stack, stack.attach("caller"), served


def put(key: str, value: int, kind: Any = "call") -> Call:
    return Call("t::put", {"key": key, "value": value}, kind)


@pytest.mark.requirement("engine.local.reads_own_writes")
@pytest.mark.parametrize("read", ["t::get", "t::scan"])
async def test_a_caller_reads_what_it_has_written_without_waiting_for_it(read: str) -> None:
    async with rows() as (_, bus, _rows):
        for n in range(50):
            await bus.void("t::put", {"key": "k", "value": n})
            assert await bus.call(read, {"key": "k"}) == n


@pytest.mark.requirement("engine.sequence.one_commit")
async def test_consecutive_transactions_of_a_sequence_share_one_commit() -> None:
    async with rows() as (stack, bus, served):
        await bus.call("queue::define", {"queue": "q", "config": {}})
        await stack.store.write(lambda _: None)
        before = stack.store.commits
        calls = [put("a", 1), put("b", 2, "void"), Call("t::note", {"job": 1}, "enqueue", "q"), put("c", 3)]
        results = await bus.sequence(calls)
        assert stack.store.commits - before == 1
        assert results[0] == {"put": 1} and results[1] is None and isinstance(results[2], str)
        await until(lambda: len(served.noted) == 4)
        told = [data["put"] for data, *_ in served.noted if "put" in data]
        assert told == ["a", "b", "c"] and ({"job": 1}) in [data for data, *_ in served.noted]


@pytest.mark.requirement("engine.sequence.savepoints")
@pytest.mark.parametrize(
    "bad", [put("bad", -1), put("bad", UNSAYABLE), Call("t::put", {"key": "bad"}), Call("t::none", {})]
)
async def test_a_failing_call_takes_back_itself_alone_and_ends_the_sequence(bad: Call) -> None:
    async with rows() as (_, bus, served):
        with pytest.raises(PartialSequence) as caught:
            await bus.sequence([put("a", 1), bad, put("b", 2)])
        assert caught.value.done == [{"put": 1}]
        values = [await bus.call("t::get", {"key": key}) for key in ("a", "bad", "b")]
        assert values == [1, None, None]
        await settle()
        assert [data["put"] for data, *_ in served.noted] == ["a"]


@pytest.mark.requirement("engine.sequence.void")
@pytest.mark.parametrize("bad", [put("bad", -1, "void"), Call("t::none", {}, "void"), Call("t::put", {}, "void")])
async def test_a_failing_void_call_takes_back_itself_and_the_sequence_goes_on(bad: Call) -> None:
    async with rows() as (_, bus, _rows):
        assert await bus.sequence([put("a", 1), bad, put("b", 2)]) == [{"put": 1}, None, {"put": 2}]
        values = [await bus.call("t::get", {"key": key}) for key in ("a", "bad", "b")]
        assert values == [1, None, 2]


@pytest.mark.requirement("engine.sequence.mixed")
async def test_a_sequence_goes_on_over_functions_that_are_no_transactions() -> None:
    async with rows() as (stack, bus, _rows), wire_peers(stack.url) as connecting:
        remote = await connecting()
        await remote.register("t::remote")
        calls = [put("a", 1), Call("t::get", {"key": "a"}), Call("t::remote", {}), put("a", 2)]
        running = asyncio.ensure_future(bus.sequence(calls))
        frame = await remote.expect("invokefunction")
        assert await bus.call("t::get", {"key": "a"}) == 1
        await remote.answer(frame, result="remote")
        assert await running == [{"put": 1}, 1, "remote", {"put": 2}]


@pytest.mark.requirement("engine.local.result_in_transaction")
async def test_a_result_that_is_no_json_rolls_its_transaction_back() -> None:
    async with rows() as (_, bus, served):
        with pytest.raises(BusError, match="nan"):
            await bus.call("t::put", {"key": "k", "value": UNSAYABLE})
        assert await bus.call("t::get", {"key": "k"}) is None
        await settle()
        assert served.noted == []


@pytest.mark.requirement("engine.local.cancel")
async def test_a_cancelled_caller_forgets_the_answer_and_the_work_is_done() -> None:
    async with rows() as (_, bus, _rows):
        ended = asyncio.Event()

        async def slow(_: Any, __: Invocation) -> None:
            await settle()
            ended.set()

        bus.serve(FunctionSpec("t::slow", "of a test", None, None, "t/invalid"), slow)
        for call in (bus.call("t::slow", {}), bus.call("t::put", {"key": "k", "value": 5})):
            calling = asyncio.ensure_future(call)
            await asyncio.sleep(0)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
        await ended.wait()
        assert await bus.call("t::get", {"key": "k"}) == 5
        assert len(bus.worker.waiting) == 0


@pytest.mark.requirement("engine.local.timeout")
async def test_calls_run_out_each_after_its_own_time() -> None:
    async with rows() as (_, bus, _rows):

        async def hang(_: Any, __: Invocation) -> None:
            await asyncio.Event().wait()

        bus.serve(FunctionSpec("t::hang", "of a test", None, None, "t/invalid"), hang)
        order: list[int] = []

        async def call(timeout_ms: int) -> None:
            with pytest.raises(BusError) as caught:
                await bus.call("t::hang", {}, opts=Opts(timeout_ms=timeout_ms))
            assert caught.value.code == "TIMEOUT"
            assert caught.value.message == f"invocation timed out after {timeout_ms}ms"
            order.append(timeout_ms)

        async def later() -> None:
            await call(40)
            await call(60)

        await asyncio.gather(call(200), call(20), call(60), call(20), later())
        assert order == [20, 20, 40, 60, 60, 200]
        await call(30)
        assert len(bus.worker.waiting) == 0


@pytest.mark.requirement("engine.local.clean_context")
async def test_a_handler_sees_no_context_variables_of_its_caller() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    async with rows() as (_, bus, _rows):

        async def read(_: Any, __: Invocation) -> str:
            return variable.get()

        bus.serve(FunctionSpec("t::read", "of a test", None, None, "t/invalid"), read)
        variable.set("the caller's")
        assert await bus.call("t::read", {}) == "unset"


@pytest.mark.requirement("engine.local.trace")
async def test_trace_and_baggage_travel_to_the_handler_and_to_the_events_of_a_transaction() -> None:
    async with rows() as (stack, bus, served):

        async def look(_: Any, call: Invocation) -> Any:
            span = trace.get_current_span().get_span_context()
            return {"trace": f"{span.trace_id:032x}", "baggage": dict(baggage.get_all()), "seen": call.traceparent}

        bus.serve(FunctionSpec("t::look", "of a test", None, None, "t/invalid"), look)
        span = NonRecordingSpan(SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=TraceFlags(1)))
        context = baggage.set_baggage("tenant", "a b", trace.set_span_in_context(span))
        token = otel.attach(context)
        try:
            seen = await bus.call("t::look", {})
            await bus.call("t::put", {"key": "k", "value": 1})
            await bus.sequence([put("l", 2)])
            async with wire_peers(stack.url) as connecting:
                peer = await connecting()
                await peer.register("t::remote")
                await bus.void("t::remote", {})
                frame = await peer.expect("invokefunction")
        finally:
            otel.detach(token)
        traceparent = f"00-{0xABC:032x}-{0xDEF:016x}-01"
        assert seen == {
            "trace": f"{0xABC:032x}",
            "baggage": {"tenant": "a b", "iii.function.id": "t::look"},
            "seen": traceparent,
        }
        await until(lambda: len(served.noted) == 2)
        for _, _, noted, carried in served.noted:
            assert noted == traceparent and "tenant=a" in carried and "iii.function.id=t::note" in carried
        assert frame["traceparent"] == traceparent and "iii.function.id=t::remote" in frame["baggage"]
        assert (await bus.call("t::look", {}))["seen"] is None


@pytest.mark.requirement("engine.local.unseen_crash")
async def test_a_handler_that_ends_the_process_answers_nothing() -> None:
    class Death(BaseException):
        pass

    async with rows() as (stack, bus, _rows):

        def die(tx: Tx, _: Any, __: Invocation) -> Any:
            raise Death

        bus.serve(FunctionSpec("t::die", "of a test", None, None, "t/invalid"), TxHandler(die))
        for calling in (bus.call("t::die", {}), bus.sequence([Call("t::die", {})])):
            waiting = asyncio.ensure_future(calling)
            await stack.store.write(lambda _: None)
            await settle()
            assert not waiting.done()
            waiting.cancel()


@pytest.mark.requirement("engine.local.builtin_caller")
async def test_calls_of_workers_inside_the_engine_name_no_caller() -> None:
    async with rows() as (stack, bus, served):
        inside = stack.attach("inside", builtin=True)
        await inside.call("t::note", {"n": 1})
        await bus.call("t::note", {"n": 2})
        async with wire_peers(stack.url) as connecting:
            peer = await connecting()
            await peer.register("t::remote")
            await inside.void("t::remote", {"n": 3})
            await bus.void("t::remote", {"n": 4})
            await peer.expect("invokefunction", count=2)
            sent = [frame["data"] for frame in peer.seen("invokefunction")]
        assert [caller for _, caller, *_ in served.noted] == [None, bus.worker_id]
        assert sent == [{"n": 3}, {"n": 4, "_caller_worker_id": bus.worker_id}]
