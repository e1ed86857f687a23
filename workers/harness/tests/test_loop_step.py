"""Steps on the real engine, queue and session store, in commit and in stepwise mode."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from iii_harness.shell.points import LoopPoint
from iii_kit.errors import BusError
from iii_testing.invariants import check_request
from iii_testing.loop_bench import bench, call, message, reply, spec, steps, text
from iii_testing.waiting import driven, until

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["commit", "stepwise"])
def stepwise(request):
    return request.param


@pytest.mark.requirement("loop.step.answers")
async def test_a_turn_without_calls_ends_completed_with_the_text(world, tmp_path, stepwise):
    async with bench(world, tmp_path, lambda _: reply(text("hi there")), stepwise=stepwise) as b:
        sent = await b.send("hello")
        record = await b.over(sent["session_id"])
        assert (record.status, record.result, record.turn_count) == ("completed", "hi there", 1)
        path = await b.path_of(sent["session_id"])
        assert [item.get("message", {}).get("role", "custom") for item in path] == ["user", "custom", "assistant"]
        assert path[-1]["entry_id"] == f"e_{sent['turn_id']}_0_assistant"
        assert path[-1]["message"]["usage"] == {"input": 10, "output": 5}
        assert b.completed[0]["result"] == "hi there"
        meta = await b.call("session::get", session_id=sent["session_id"])
        assert meta["meta"]["status"] == "done"


@pytest.mark.requirement("loop.call.result")
async def test_a_call_runs_once_and_its_result_goes_back_to_the_model(world, tmp_path, stepwise):
    model = steps(reply(call("c1", "demo::add", {"a": 1, "b": 2})), reply(text("3")))
    async with bench(world, tmp_path, model, stepwise=stepwise, add=lambda d: {"sum": d["a"] + d["b"]}) as b:
        sent = await b.send("add")
        record = await b.over(sent["session_id"])
        assert (record.status, record.result, record.step) == ("completed", "3", 1)
        assert dict(b.started) == {'demo::add {"a": 1, "b": 2}': 1}
        result = b.requests[1]["messages"][-1]
        assert (result["role"], result["function_call_id"], result["function_id"]) == (
            "function_result",
            "c1",
            "demo::add",
        )
        assert result["content"] == [text('{"sum":3}')]
        assert (result["details"], result["is_error"]) == ({"sum": 3}, False)


@pytest.mark.requirement("loop.steps.many")
async def test_calls_of_one_reply_run_in_order_and_the_window_grows_at_its_end_only(world, tmp_path, stepwise):
    ran: list[int] = []
    model = steps(
        reply(call("a", "demo::do", {"n": 1}), call("b", "demo::do", {"n": 2})),
        reply(call("a", "demo::do", {"n": 3})),
        reply(text("end")),
    )
    async with bench(world, tmp_path, model, stepwise=stepwise, do=lambda d: ran.append(d["n"])) as b:
        sent = await b.send()
        record = await b.over(sent["session_id"])
        assert ran == [1, 2, 3]
        assert (record.turn_count, record.step) == (3, 2)
        assert set(record.calls) == {"a", "b", "a_1"}, "an id that the turn already used is renamed"
        for earlier, later in itertools.pairwise(b.requests):
            assert later["messages"][: len(earlier["messages"])] == earlier["messages"]


@pytest.mark.requirement("loop.steering")
async def test_a_message_sent_while_the_turn_runs_is_read_by_its_next_step(world, tmp_path, stepwise):
    async with bench(world, tmp_path, lambda _: reply(text("x")), stepwise=stepwise) as b:

        async def model(request):
            if len(b.requests) == 1:
                steered = await b.send("and now?", session_id=request["session_id"])
                assert steered["merged"] and steered["queued"]
            return reply(text(f"reply {len(b.requests)}"))

        b.model = model
        sent = await b.send("hello")
        record = await b.over(sent["session_id"])
        assert (record.result, record.step) == ("reply 2", 1)
        assert [m["role"] for m in b.requests[1]["messages"]] == ["user", "assistant", "user"]
        assert len(b.completed) == 1


@pytest.mark.requirement("loop.denied")
async def test_a_denied_call_reaches_no_target_and_fs_scope_of_the_model_is_dropped(world, tmp_path):
    got: list[dict] = []
    model = steps(
        reply(call("a", "other::x", {}), call("b", "demo::do", {"fs_scope": {"root": "/"}, "x": 1})), reply(text("end"))
    )
    async with bench(world, tmp_path, model, do=got.append) as b:
        record = await b.over((await b.send())["session_id"])
        assert record.status == "completed"
        assert got == [{"x": 1}]
        assert b.requests[1]["messages"][-2]["details"]["error"] == "policy_denied"


@pytest.mark.requirement("loop.call.failed")
async def test_a_failed_call_is_a_result_and_the_third_equal_failure_is_answered_here(world, tmp_path):
    def broken(_):
        raise BusError("demo/broken", "no luck")

    model = steps(*(reply(call(f"c{n}", "demo::do", {})) for n in range(3)), reply(text("end")))
    async with bench(world, tmp_path, model, do=broken) as b:
        record = await b.over((await b.send())["session_id"])
        assert record.status == "completed"
        results = [m for m in b.requests[-1]["messages"] if m["role"] == "function_result"]
        assert [r["is_error"] for r in results] == [True] * 3
        assert results[0]["details"]["error"]["code"] == "demo/broken"
        assert results[2]["details"]["error"] == "repeated_failure"
        assert sum(b.started.values()) == 2


@pytest.mark.requirement("loop.stop.call")
async def test_a_stop_ends_the_wait_for_a_call_and_cancels_the_turn(world, tmp_path, stepwise):
    running, release = asyncio.Event(), asyncio.Event()

    async def slow(_):
        running.set()
        await release.wait()

    model = steps(reply(call("c", "demo::do", {}), call("d", "demo::do", {"n": 2})), reply(text("never")))
    async with bench(world, tmp_path, model, stepwise=stepwise, do=slow) as b:
        sent = await b.send()
        await running.wait()
        assert await b.call("harness::stop", session_id=sent["session_id"]) == {"stopping": True}
        record = await b.over(sent["session_id"])
        release.set()
        assert (record.status, record.result) == ("cancelled", None)
        path = await b.path_of(sent["session_id"])
        results = [i["message"] for i in path if i.get("message", {}).get("role") == "function_result"]
        assert [r["details"] for r in results] == [{"error": "interrupted"}]
        assert path[-1]["entry_id"] == f"e_{sent['turn_id']}_stopped"
        assert b.completed[0]["reason"] == "stopped"
        meta = (await b.call("session::get", session_id=sent["session_id"]))["meta"]
        assert (meta["status"], meta["status_reason"]) == ("done", "stopped")
        again = await b.send("go on", session_id=sent["session_id"])
        assert again["turn_id"] != sent["turn_id"]
        b.model = lambda _: reply(text("fine"))
        assert (await b.over(sent["session_id"], turns=2)).result == "fine"
        check_request(b.requests[-1]["messages"])


@pytest.mark.requirement("loop.stop.stream")
async def test_a_stop_during_the_stream_keeps_what_had_arrived(world, tmp_path, stepwise):
    streaming = asyncio.Event()

    async def model(_):
        partial = message(text("half of"), stop_reason="end")
        return [
            {"type": "start", "partial": message(stop_reason="end")},
            {"type": "text_start", "partial": partial},
            {"type": "text_delta", "delta": " it"},
            streaming,
        ]

    async with bench(world, tmp_path, model, stepwise=stepwise) as b:
        sent = await b.send()
        await streaming.wait()
        await b.call("harness::stop", session_id=sent["session_id"])
        record = await b.over(sent["session_id"])
        assert record.status == "cancelled"
        path = await b.path_of(sent["session_id"])
        reply_entry = next(i for i in path if i.get("message", {}).get("role") == "assistant")
        assert reply_entry["message"]["content"] == [text("half of it")]
        assert reply_entry["message"]["stop_reason"] == "aborted"
        assert b.aborted.count(f"{sent['turn_id']}:0") >= 2


@pytest.mark.requirement("loop.stop.stream-again")
async def test_stops_that_come_together_are_each_answered(world, tmp_path):
    streaming = asyncio.Event()

    async def model(_):
        partial = message(text("half of"), stop_reason="end")
        return [{"type": "start", "partial": partial}, {"type": "text_start", "partial": partial}, streaming]

    async with bench(world, tmp_path, model) as b:
        sent = await b.send()
        await streaming.wait()
        stops = []
        for _ in range(12):
            stops.append(asyncio.ensure_future(b.call("harness::stop", session_id=sent["session_id"])))
            await asyncio.sleep(0)
        answers = await asyncio.gather(*stops)
        assert all("stopping" in answer for answer in answers) and answers[0] == {"stopping": True}
        assert (await b.over(sent["session_id"])).status == "cancelled"


@pytest.mark.requirement("loop.stream.coalesced")
async def test_partials_are_stored_at_most_once_per_interval_and_the_final_content_always(world, tmp_path):
    updates: list[int] = []

    async def pause():
        await world.advance(0.06)

    async def model(_):
        return [
            {"type": "start", "partial": message(stop_reason="end")},
            {"type": "text_start", "partial": message(text(""), stop_reason="end")},
            *(
                frame
                for n in range(6)
                for frame in ({"type": "text_delta", "delta": str(n)}, lambda: world.advance(0.06))
            ),
            {"type": "done", "message": message(text("012345"))},
        ]

    async with bench(world, tmp_path, model) as b:

        async def updated(data, _):
            updates.append(len(data["message"]["content"]))

        b.client.serve(spec("client::updated"), updated)
        b.client.bind("session::message-updated", "client::updated", {})
        sent = await b.send()
        await b.over(sent["session_id"])
        await until(lambda: updates)
        assert 2 <= len(updates) <= 4
        path = await b.path_of(sent["session_id"])
        assert path[-1]["message"]["content"] == [text("012345")]


@pytest.mark.requirement("loop.stream.stalled")
async def test_what_a_model_said_before_it_stalled_is_stored_without_another_frame(world, tmp_path):
    stalled = asyncio.Event()

    async def model(_):
        return [
            {"type": "start", "partial": message(stop_reason="end")},
            {"type": "text_start", "partial": message(text(""), stop_reason="end")},
            *({"type": "text_delta", "delta": str(n)} for n in range(4)),
            stalled,
        ]

    async with bench(world, tmp_path, model) as b:
        shown: list[Any] = []

        async def updated(data, _):
            shown.append(data["message"]["content"])

        b.client.serve(spec("client::updated"), updated)
        b.client.bind("session::message-updated", "client::updated", {})
        sent = await b.send()
        await stalled.wait()
        await world.advance(0.149)
        assert shown == []
        await world.advance(0.002)
        await until(lambda: shown)
        await world.advance(5)
        assert shown == [[text("0123")]], "stored once, and not again while nothing new is said"
        await b.call("harness::stop", session_id=sent["session_id"])
        assert (await b.over(sent["session_id"])).status == "cancelled"
        path = await b.path_of(sent["session_id"])
        reply_entry = next(i for i in path if i.get("message", {}).get("role") == "assistant")
        assert reply_entry["message"]["content"] == [text("0123")]
        assert not [task for task in asyncio.all_tasks() if "Partials" in repr(task.get_coro())]


@pytest.mark.requirement("loop.generation.failed")
async def test_a_refused_generation_fails_the_turn_with_the_routers_code(world, tmp_path):
    async with bench(world, tmp_path, lambda _: [{"type": "error", "error": message(stop_reason="error")}]) as b:
        error = {"code": "router/provider_auth_expired", "message": "no key", "kind": "auth_expired"}
        b.chat_answer = lambda _: {"ok": False, "provider": "p", "model": "m", "error": error}
        sent = await b.send()
        record = await b.over(sent["session_id"])
        assert (record.status, record.result_error) == ("failed", "The provider's credentials need attention.")
        entry = (await b.path_of(sent["session_id"]))[-1]
        assert entry["entry_id"] == f"e_{sent['turn_id']}_error"
        data = entry["custom"]["data"]
        assert (data["code"], data["class"], data["retryable"]) == (
            "router/provider_auth_expired",
            "llm.auth_expired",
            False,
        )
        meta = (await b.call("session::get", session_id=sent["session_id"]))["meta"]
        assert (meta["status"], meta["status_reason"]) == ("error", record.result_error)


@pytest.mark.requirement("loop.generation.cut")
async def test_a_stream_that_breaks_after_text_is_resumed_and_recovers(world, tmp_path):
    cut = [
        {"type": "start", "partial": message(stop_reason="end")},
        {"type": "text_start", "partial": message(text("half"), stop_reason="end")},
    ]
    async with bench(world, tmp_path, lambda r: cut if not replies_shown(r) else reply(text("whole"))) as b:
        sent = await b.send()
        record = await b.over(sent["session_id"])
        assert (record.status, record.result, record.transient_resumes) == ("completed", "whole", 1)
        kinds = [i["custom"]["data"]["status"] for i in await b.path_of(sent["session_id"]) if _recovery(i)]
        assert kinds == ["recovering", "recovered"]


@pytest.mark.requirement("loop.generation.in-progress")
async def test_a_request_that_is_still_in_progress_is_tried_again_in_place(world, tmp_path):
    async with bench(world, tmp_path, lambda _: reply(text("x"))) as b:
        refusals = iter([True, True])

        def answer(_):
            if next(refusals, False):
                raise BusError("router/request_in_progress", "router/request_in_progress: t:0 is still streaming")
            return {"ok": True, "provider": "test", "model": "m"}

        b.chat_answer = answer
        sent = await b.send()
        record = await driven(world, b.over(sent["session_id"]))
        assert (record.status, record.turn_count) == ("completed", 1)
        assert b.aborted == [f"{sent['turn_id']}:0"] * 2


@pytest.mark.requirement("loop.redelivery.once")
async def test_a_delivery_of_a_step_that_executes_is_skipped_at_once(world, tmp_path):
    async with bench(world, tmp_path, lambda _: reply(text("x"))) as b:
        answers: list[dict] = []

        async def model(request):
            turn_id, step = request["request_id"].split(":")
            payload = {"session_id": request["session_id"], "turn_id": turn_id, "step": int(step)}
            answers.append(await b.call("harness::turn", **payload))
            answers.append(await b.call("harness::turn", **{**payload, "step": 7}))
            return reply(text("x"))

        b.model = model
        sent = await b.send()
        await b.over(sent["session_id"])
        assert [(a["skipped"], a["status"]) for a in answers] == [(True, "running")] * 2
        assert len(b.requests) == 1


@pytest.mark.requirement("loop.points.reached")
async def test_every_crash_point_of_the_loop_is_reached(world, tmp_path):
    model = steps(reply(call("a", "demo::do", {}), call("b", "demo::do", {"n": 1})), reply(text("end")))
    async with bench(world, tmp_path, model, do=lambda _: None) as b:
        await b.over((await b.send())["session_id"])
        await until(lambda: LoopPoint.SETTLED in world.points.reached)
    assert set(LoopPoint) <= set(world.points.reached)


def replies_shown(request):
    return sum(m["role"] == "assistant" for m in request["messages"])


def _recovery(item):
    return item.get("custom", {}).get("custom_type") == "recovery"
