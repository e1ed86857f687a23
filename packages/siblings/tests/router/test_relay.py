"""The relay of a stream: held frames, retries, time-outs, aborts, callers that leave (siblings 5.6)."""

from __future__ import annotations

import asyncio
import json

import pytest

from iii_contracts.provider import functions_of
from iii_contracts.spec import FunctionSpec
from iii_kit.bus import Opts
from iii_kit.errors import BusError, CodedError
from iii_testing.played import DELTA, DONE, PING, START, TEXT, failed, message, usage
from iii_testing.waiting import driven, until

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("router.relay.verbatim")
async def test_frames_are_passed_on_as_they_came(stack, played):
    odd = '{"delta" : "x",  "type":"text_delta", "unknown": [1]}'
    played.attempts = [[START, TEXT, odd, '{"type":"future_frame","a":1}', DONE]]
    channel = await stack.bus.channel()
    ref = channel.writer.to_json()
    call = stack.bus.call("router::chat", {"model": "m", "provider": "played", "messages": [], "writer_ref": ref})
    answer = asyncio.create_task(call)
    items = [item async for item in channel.source]
    sent = [json.dumps(START), json.dumps(TEXT), odd, '{"type":"future_frame","a":1}', json.dumps(DONE)]
    assert items == sent
    assert await answer == {"ok": True, "provider": "played", "model": "m", "stop_reason": "end"}


@pytest.mark.requirement("router.relay.held")
async def test_start_and_usage_wait_for_content_and_pings_do_not(stack, played):
    played.attempts = [[START, usage(input=1), PING, "hang"]]
    channel = await stack.bus.channel()
    request = {"model": "m", "provider": "played", "messages": [], "writer_ref": channel.writer.to_json()}
    call = asyncio.create_task(stack.bus.call("router::chat", {**request, "request_id": "r"}))
    source = aiter(channel.source)
    assert json.loads(await anext(source)) == PING
    await stack.bus.call("router::abort", {"request_id": "r"})
    rest = [json.loads(item)["type"] async for item in source]
    assert rest == ["start", "usage", "done"]
    assert (await call)["stop_reason"] == "aborted"


@pytest.mark.requirement("router.relay.retry")
@pytest.mark.parametrize("lost", [[failed("transient")], [START, failed("rate_limited")], [START, usage(input=9)], []])
async def test_an_attempt_without_content_is_made_again_and_leaves_no_trace(stack, played, world, lost):
    played.attempts = [lost, lost, [START, TEXT, DELTA, DONE]]
    got = await driven(world, stack.chat(provider="played", request_id="r"))
    assert got.kinds == ["start", "text_start", "text_delta", "done"]
    assert got.response["ok"] is True
    assert [request["resolution_key"] for request in played.requests] == ["r", "r", "r"]
    refs = {request["writer_ref"]["channel_id"] for request in played.requests}
    assert len(refs) == 3


@pytest.mark.requirement("router.relay.retry")
async def test_retries_end_after_the_configured_number(stack, played, world):
    played.attempts = [[START, failed("transient")]]
    before = world.clock.monotonic()
    got = await driven(world, stack.chat(provider="played"))
    assert len(played.requests) == 3
    assert 0.75 * 1.5 <= world.clock.monotonic() - before <= 1.25 * 1.5 + 0.01
    assert got.kinds == ["start", "error"]
    assert got.response["error"] == {
        "code": "router/provider_transient",
        "message": "it failed",
        "kind": "transient",
        "retryable": True,
    }


@pytest.mark.requirement("router.relay.no_retry")
@pytest.mark.parametrize("kind", ["permanent", "auth_expired", "context_overflow"])
async def test_other_errors_are_passed_on_at_once(stack, played, kind):
    codes = {
        "permanent": "router/provider_rejected",
        "auth_expired": "router/provider_auth_expired",
        "context_overflow": "router/context_overflow",
    }
    played.attempts = [[START, failed(kind)]]
    got = await stack.chat(provider="played")
    assert got.kinds == ["start", "error"]
    assert (got.response["ok"], got.response["error"]["code"]) == (False, codes[kind])
    assert len(played.requests) == 1


@pytest.mark.requirement("router.relay.no_retry")
@pytest.mark.parametrize("end", [[failed("transient")], []])
async def test_nothing_is_retried_after_content(stack, played, end):
    played.attempts = [[START, TEXT, DELTA, *end]]
    got = await stack.chat(provider="played")
    assert got.kinds == ["start", "text_start", "text_delta", "error"]
    assert len(played.requests) == 1
    assert got.response["error"]["kind"] == "transient"


@pytest.mark.requirement("router.relay.retry_after")
async def test_the_wait_that_a_provider_names_is_kept(stack, played, world):
    played.attempts = [[failed("rate_limited", retry_after_ms=40_000)], [START, TEXT, DONE]]
    before = world.clock.monotonic()
    got = await driven(world, stack.chat(provider="played"))
    assert got.kinds == ["ping", "ping", "start", "text_start", "done"]
    assert world.clock.monotonic() - before >= 40


@pytest.mark.requirement("router.relay.retry_after")
async def test_a_wait_that_is_too_long_is_left_to_the_caller(stack, played):
    played.attempts = [[failed("rate_limited", retry_after_ms=3_600_000)]]
    got = await stack.chat(provider="played")
    assert got.response["error"]["detail"] == {"retry_after_ms": 3_600_000}
    assert len(played.requests) == 1


@pytest.mark.requirement("router.relay.incomplete")
async def test_a_stream_without_an_end_keeps_its_text_in_the_error(stack, played):
    played.attempts = [[START, TEXT, DELTA]]
    got = await stack.chat(provider="played")
    assert got.text == "Hello"
    assert got.last["error_message"] == "provider played stream ended without a terminal frame"
    assert got.last["error_kind"] == "transient"
    assert got.response["error"]["code"] == "router/stream_incomplete"


@pytest.mark.requirement("router.relay.idle")
async def test_a_silent_stream_ends_and_its_provider_is_stopped(stack, played, world):
    played.attempts = [[START, TEXT, "hang"]]
    before = world.clock.monotonic()
    got = await driven(world, stack.chat(provider="played", request_id="r"))
    assert world.clock.monotonic() - before == pytest.approx(120, abs=1)
    assert got.last["error_message"] == "provider played stream idle past 120000ms"
    assert got.response["error"]["code"] == "router/stream_idle_timeout"
    assert got.text == "Hel"
    assert played.aborted == ["r"]
    assert len(played.requests) == 1


@pytest.mark.requirement("router.relay.total")
async def test_the_whole_time_is_bounded_though_pings_come(stack, world):
    bus = stack.engine.attach("provider-steady")
    gone: list[BusError] = []

    async def ping_for_ever(request, _):
        sink = await bus.sink(request["writer_ref"])
        try:
            while True:
                await sink.send(json.dumps(PING))
                await world.clock.sleep(20)
        except BusError as error:
            gone.append(error)

    bus.serve(functions_of("steady").stream, ping_for_ever)
    await bus.call("router::provider::register", {"id": "steady"})
    before = world.clock.monotonic()
    got = await driven(world, stack.chat(provider="steady"))
    await world.advance(20)
    assert gone
    assert world.clock.monotonic() - before == pytest.approx(320, abs=25)
    assert got.last["error_message"] == "provider steady stream took longer than 300000ms"
    assert got.response["error"]["kind"] == "transient"


@pytest.mark.requirement("router.relay.abort")
async def test_an_abort_ends_the_stream_with_what_there_is(stack, played):
    played.attempts = [[START, TEXT, usage(input=5), DELTA, "hang"]]
    running = asyncio.create_task(stack.chat(provider="played", request_id="r"))
    await until(lambda: played.requests)
    await asyncio.sleep(0)
    assert await stack.bus.call("router::abort", {"request_id": "r"}) == {"aborted": True}
    got = await running
    assert got.kinds[-1] == "done"
    assert (got.text, got.last["stop_reason"], got.last["usage"]) == ("Hello", "aborted", {"input": 5})
    assert got.response == {
        "ok": True,
        "provider": "played",
        "model": "any",
        "stop_reason": "aborted",
        "usage": {"input": 5},
    }
    assert played.aborted == ["r"]
    assert await stack.bus.call("router::abort", {"request_id": "r"}) == {"aborted": False}
    again = await stack.script({"text": "free again"}, request_id="r")
    assert again.text == "free again"


@pytest.mark.requirement("router.relay.abort")
async def test_an_abort_is_heard_while_waiting_for_the_next_attempt(stack, played, world):
    played.attempts = [[failed("transient")]]
    running = asyncio.create_task(stack.chat(provider="played", request_id="r"))
    await until(lambda: world.manual_clock.next_wake is not None and world.manual_clock.next_wake < 1)
    assert await stack.bus.call("router::abort", {"request_id": "r"}) == {"aborted": True}
    got = await running
    assert (got.kinds, got.last["stop_reason"]) == (["done"], "aborted")


@pytest.mark.requirement("router.relay.gone")
async def test_a_caller_that_leaves_stops_the_provider(stack, played):
    played.attempts = [[START, TEXT, *[DELTA] * 500, "hang"]]
    channel = await stack.bus.channel(4)
    request = {"model": "m", "provider": "played", "messages": [], "writer_ref": channel.writer.to_json()}
    call = asyncio.create_task(stack.bus.call("router::chat", {**request, "request_id": "r"}))
    async for _ in channel.source:
        break
    await channel.source.close()
    assert await call == {"ok": True, "provider": "played", "model": "m", "stop_reason": "aborted"}
    assert played.aborted == ["r"]


@pytest.mark.requirement("router.relay.setup")
@pytest.mark.parametrize(
    ("error", "kind", "attempts"),
    [
        (CodedError("provider/invalid_request", "bad"), "permanent", 1),
        (CodedError("invocation_stopped", "worker left"), "transient", 3),
    ],
)
async def test_a_call_that_does_not_start_ends_in_an_error(stack, played, world, error, kind, attempts):
    played.attempts = [[error]]
    got = await driven(world, stack.chat(provider="played"))
    assert got.kinds == ["error"]
    assert got.response["error"]["code"] == "router/stream_setup_failed"
    assert got.response["error"]["kind"] == kind
    assert len(played.requests) == attempts


@pytest.mark.requirement("router.relay.unavailable")
async def test_a_provider_without_its_function_is_unavailable(stack, played):
    events: list[dict] = []
    await stack.bus.call("router::provider::register", {"id": "ghost"})

    async def listen(event, _):
        events.append(event)

    stack.bus.serve(FunctionSpec("test::heard", "hears", None, None, "test/invalid"), listen)
    stack.bus.bind("router::provider::changed", "test::heard", {})
    got = await stack.chat(provider="ghost")
    assert got.error.matches("router/provider_unavailable")
    assert got.kinds == ["error"]
    assert got.last["error_kind"] == "permanent"
    rows = (await stack.bus.call("router::provider::list", {}))["providers"]
    assert [row["available"] for row in rows if row["id"] == "ghost"] == [False]
    await until(lambda: any(event.get("op") == "unavailable" for event in events))


@pytest.mark.requirement("router.relay.cost")
async def test_cost_is_filled_in_where_a_rate_is_known(stack, played):
    model = {"id": "m", "provider": "played", "context_window": 10, "max_output_tokens": 5}
    pricing = {"input": 2, "output": 10, "cache_read": 0.5}
    request = {"provider": "played", "token": played.token, "models": [{**model, "pricing": pricing}]}
    await stack.bus.call("router::models::reconcile", request)
    counts = {"input": 1_000_000, "output": 100_000, "cache_read": 2_000_000, "cache_write": 7}
    done = {"type": "done", "message": message("x", usage=counts)}
    played.attempts = [[START, TEXT, usage(**counts), done]]
    got = await stack.chat(model="m")
    assert got.response["usage"]["cost_usd"] == pytest.approx(4)
    assert got.last["usage"]["cost_usd"] == pytest.approx(4)
    assert got.frames[2]["usage"]["cost_usd"] == pytest.approx(4)
    played.attempts = [[START, TEXT, {"type": "done", "message": message("x", usage={**counts, "cost_usd": 1.5})}]]
    assert (await stack.chat(model="m")).response["usage"]["cost_usd"] == 1.5
    played.attempts = [[START, TEXT, {"type": "done", "message": message("x", usage={"reasoning": 3})}]]
    assert (await stack.chat(model="m")).response["usage"] == {"reasoning": 3}


@pytest.mark.requirement("router.relay.in_progress")
async def test_one_request_id_streams_once(stack, played):
    played.attempts = [[START, TEXT, "hang"]]
    running = asyncio.create_task(stack.chat(provider="played", request_id="r"))
    await until(lambda: played.requests)
    second = await stack.chat(provider="played", request_id="r")
    assert second.error.matches("router/request_in_progress")
    assert second.kinds == ["error"]
    await stack.bus.call("router::abort", {"request_id": "r"})
    assert (await running).response["ok"] is True


@pytest.mark.requirement("router.drain")
async def test_a_drain_ends_streams_and_refuses_more(stack, played):
    played.attempts = [[START, TEXT, "hang"]]
    running = asyncio.create_task(stack.chat(provider="played"))
    await until(lambda: played.requests)
    await stack.router.drain()
    got = await running
    assert (got.kinds[-1], got.response["error"]["kind"]) == ("error", "transient")
    assert (await stack.chat(provider="played")).error.matches("router/capacity_exceeded")


@pytest.mark.requirement("router.complete")
async def test_complete_answers_as_a_whole(stack, played, world):
    played.attempts = [[START, failed("transient")], [START, TEXT, DONE]]
    request = {"model": "m", "provider": "played", "messages": []}
    answer = await driven(world, stack.bus.call("router::complete", request, opts=Opts(timeout_ms=600_000)))
    assert answer == {"message": message("Hello"), "provider": "played", "model": "m"}
    played.attempts = [[failed("permanent")]]
    answer = await stack.bus.call("router::complete", request)
    assert answer["message"]["error_kind"] == "permanent"
