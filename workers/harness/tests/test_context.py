"""The context manager beside the loop, on the real engine and stores: asked, used, failing, gone."""

from __future__ import annotations

import asyncio
import json

import pytest

from iii_contracts.harness.context import ContextSnapshotV1
from iii_harness.catalog import LIST
from iii_harness.shell.points import LoopPoint
from iii_kit.bus import Call
from iii_kit.errors import BusError, CodedError
from iii_testing.loop_bench import LoopBench, bench, call, reply, spec, steps, text
from iii_testing.played_context import PlayedContext, never, tokens
from iii_testing.waiting import driven, settle, until

pytestmark = pytest.mark.anyio

LONG = "x" * 4000


@pytest.fixture(params=[False, True], ids=["commit", "stepwise"])
def stepwise(request):
    return request.param


def texts(messages):
    return [block.get("text") for m in messages for block in m["content"]]


def entries(path, custom_type):
    return [item["custom"]["data"] for item in path if item.get("custom", {}).get("custom_type") == custom_type]


async def failed(b, sent):
    record = await b.over(sent["session_id"])
    assert record.status == "failed"
    return entries(await b.path_of(sent["session_id"]), "error")[0]


async def known(b, function_id, *, there=True):
    """Wait until the harness knows that a function is there, or gone; the engine gathers such news for a second."""
    while b.harness._parts.catalog.snapshot.has(function_id) is not there:
        await b.world.advance(1)
        await b.progress()


@pytest.mark.requirement("loop.context.request")
async def test_the_window_is_assembled_before_it_goes_out(world, tmp_path, stepwise):
    context = PlayedContext()
    model = steps(reply(call("c", "demo::do", {})), reply(text("end")))
    async with bench(world, tmp_path, model, stepwise=stepwise, context=context, do=lambda _: 1) as b:
        options = {"thinking_level": "high", "provider_options": {"test": {"a": 1}}, "max_output_tokens": 9000}
        sent = await b.send("hello", options=options)
        assert (await b.over(sent["session_id"])).status == "completed"
        first, second = context.asked
        assert set(first) == {"messages", "model", "tools", "system_prompt", "options"}
        assert first["model"] == {"id": "m", "provider": "test"}
        overhead = 64 + -(-len('{"provider_options":{"test":{"a":1}}}') // 4)
        assert first["options"] == {
            "lease_key": sent["session_id"],
            "request_overhead_tokens": overhead,
            "thinking_level": "high",
        }
        assert texts(first["messages"]) == ["hello"]
        assert first["system_prompt"] == b.requests[0]["system_prompt"]
        assert first["tools"] == b.requests[0]["tools"]
        assert second["messages"] == b.requests[1]["messages"]
        assert b.requests[0]["max_output_tokens"] == context.ceiling
        assert b.requests[0]["system_sections"][0]["text"] == b.requests[1]["system_sections"][0]["text"]
        assert context.counted == []


@pytest.mark.requirement("loop.context.request")
async def test_a_model_that_binds_its_reasoning_to_the_prefix_is_not_pruned(world, tmp_path):
    context = PlayedContext()
    async with bench(world, tmp_path, lambda _: reply(text("x")), context=context) as b:
        await b.over((await b.send(model="eu.claude-opus-5-5-v1"))["session_id"])
        assert context.asked[0]["options"]["allow_prune"] is False


@pytest.mark.requirement("loop.context.assembled")
async def test_what_the_manager_made_of_the_messages_is_what_the_model_gets(world, tmp_path):
    context = PlayedContext()

    def shortened(answer):
        messages = [{**m, "content": [text("cut")]} if m["role"] == "user" else m for m in answer["messages"]]
        return {**answer, "messages": messages, "system_prompt": answer["system_prompt"] + "\n\nmore"}

    context.change = shortened
    async with bench(world, tmp_path, lambda _: reply(text("x")), context=context) as b:
        sent = await b.send("hello")
        await b.over(sent["session_id"])
        request = b.requests[0]
        assert texts(request["messages"]) == ["cut"]
        assert request["system_prompt"].endswith("\n\nmore")
        assert "\n\n".join(part["text"] for part in request["system_sections"]) == request["system_prompt"]
        assert texts([item["message"] for item in await b.path_of(sent["session_id"]) if "message" in item]) == [
            "hello",
            "x",
        ]


@pytest.mark.requirement("loop.context.sections")
async def test_a_rewritten_prompt_goes_out_flat_and_the_snapshot_says_why(world, tmp_path):
    context = PlayedContext()
    context.change = lambda answer: {**answer, "system_prompt": "another prompt"}
    async with bench(world, tmp_path, lambda _: reply(text("x")), context=context) as b:
        sent = await b.send()
        await b.over(sent["session_id"])
        assert "system_sections" not in b.requests[0] and "cache_intent" not in b.requests[0]
        assert b.requests[0]["system_prompt"] == "another prompt"
        assert b.completed[0]["context"]["prompt_sections_fallback"] == "prefix_rewritten"


@pytest.mark.requirement("loop.context.compaction")
async def test_a_compaction_is_kept_and_every_later_window_opens_at_it(world, tmp_path, stepwise):
    context = PlayedContext(usable=3000)
    async with bench(world, tmp_path, lambda _: reply(text("done")), stepwise=stepwise, context=context) as b:
        session_id = (await b.send(f"one {LONG}"))["session_id"]
        await b.over(session_id)
        two = await b.send(f"two {LONG}", session_id=session_id)
        await b.over(session_id, 2)
        assert context.asked[1]["options"].get("previous_summary") is None
        path = await b.path_of(session_id)
        kept = next(item for item in path if item["entry_id"] == f"e_{two['turn_id']}_0_compaction")
        data = kept["custom"]["data"]
        start = next(i["entry_id"] for i in path if "two" in json.dumps(i.get("message", "")))
        assert data["summary"] == "summary, 2 more (1 replies)"
        assert data["tail_start_entry_id"] == start
        assert data["usable_input_tokens"] == 3000
        assert data["effective_max_output_tokens"] == context.ceiling
        assert data["assembled_token_count"] <= 3000 < data["initial_token_count"] == data["tokens_before"]
        assert data["summarized_head_tokens"] > 0
        assert texts(b.requests[1]["messages"]) == [f"two {LONG}"]
        assert b.requests[1]["system_prompt"].endswith("# Conversation summary\n\nsummary, 2 more (1 replies)")

        await b.send("three", session_id=session_id)
        await b.over(session_id, 3)
        assert texts(context.asked[2]["messages"]) == [f"two {LONG}", "done", "three"]
        assert context.asked[2]["options"]["previous_summary"] == "summary, 2 more (1 replies)"
        assert b.requests[2]["system_prompt"] == b.requests[1]["system_prompt"]
        snapshot = b.completed[2]["context"]
        assert (snapshot["compacted"], snapshot["summarized_head_tokens"]) == (True, data["summarized_head_tokens"])
        assert len(entries(await b.path_of(session_id), "compaction")) == 1


@pytest.mark.requirement("loop.context.room")
async def test_notices_are_measured_and_when_they_do_not_fit_the_context_is_assembled_once_more(world, tmp_path):
    context = PlayedContext()
    async with bench(world, tmp_path, lambda _: reply(text("x")), context=context) as b:
        session_id = (await b.send("one"))["session_id"]
        await b.over(session_id)
        denied = {"functions": {"allow": ["other::*"]}}
        await b.send("two", session_id=session_id, options=denied)
        await b.over(session_id, 2)
        counted = context.counted[0]
        assert [m["role"] for m in counted["messages"]] == ["user", "assistant", "user", "user"], "with its notice"
        assert counted["messages"] == b.requests[1]["messages"]
        assert counted["system_prompt"] == b.requests[1]["system_prompt"]
        growth = b.completed[1]["context"]["categories"]["hook_guidance"]
        assert growth > 0
        assert len(context.asked) == 2, "it fits"


@pytest.mark.requirement("loop.context.room")
async def test_a_notice_too_many_gets_one_more_assembly_and_no_third(world, tmp_path):
    context = PlayedContext()
    full: list[int] = []

    def just_full(answer):
        full.append(answer["token_count"])
        return {**answer, "usable": full[1] if len(full) > 1 else 100_000}

    async with bench(world, tmp_path, lambda _: reply(text("x")), context=context) as b:
        context.change = just_full
        session_id = (await b.send("one"))["session_id"]
        await b.over(session_id)
        await b.send("two", session_id=session_id, options={"functions": {"allow": ["other::*"]}})
        assert (await b.over(session_id, 2)).status == "failed"
        first, second = (asked["options"]["request_overhead_tokens"] for asked in context.asked[1:])
        notice = tokens([context.counted[0]["messages"][-1]])
        assert (first, second) == (65, 65 + notice + 256)
        entry = entries(await b.path_of(session_id), "error")[0]
        assert (entry["code"], entry["phase"]) == ("harness.context_overflow", "context_assembly")


@pytest.mark.requirement("loop.context.room")
async def test_the_second_assembly_makes_room_for_the_notice(world, tmp_path):
    context = PlayedContext()
    async with bench(world, tmp_path, lambda _: reply(text("x")), context=context) as b:
        session_id = (await b.send(f"one {LONG}"))["session_id"]
        await b.over(session_id)
        before = context.usable
        denied = {"functions": {"allow": ["other::*"]}}

        def full_at_first(answer):
            context.usable = answer["token_count"]
            return {**answer, "usable": answer["token_count"]}

        context.change = lambda answer: full_at_first(answer) if context.usable == before else answer
        await b.send("two", session_id=session_id, options=denied)
        assert (await b.over(session_id, 2)).status == "completed"
        assert len(context.asked) == 3 and len(context.counted) == 2
        assert texts(b.requests[1]["messages"])[0] == "two", "the second one had to summarise"
        assert b.requests[1]["messages"] == context.counted[1]["messages"]
        assert len(entries(await b.path_of(session_id), "compaction")) == 1


@pytest.mark.requirement("loop.context.overflow")
@pytest.mark.parametrize("how", ["error", "empty", "too large"])
async def test_what_does_not_fit_ends_the_turn_as_an_overflow(world, tmp_path, how):
    context = PlayedContext()

    async def refuse(_):
        raise CodedError("context/overflow", "900 tokens, 10 usable")

    if how == "error":
        context.before = refuse
    elif how == "empty":
        context.change = lambda answer: {**answer, "messages": []}
    else:
        context.change = lambda answer: {**answer, "usable": answer["token_count"] - 1}
    async with bench(world, tmp_path, lambda _: reply(text("x")), context=context) as b:
        sent = await b.send()
        entry = await failed(b, sent)
        assert (entry["code"], entry["class"], entry["phase"], entry["retryable"]) == (
            "harness.context_overflow",
            "llm.context_overflow",
            "context_assembly",
            False,
        )
        assert entry["summary"] == "The conversation could not be compacted to fit the model."
        assert b.requests == []


@pytest.mark.requirement("loop.context.overflow")
async def test_a_compaction_that_did_not_suffice_is_kept(world, tmp_path):
    context = PlayedContext(usable=3000)
    async with bench(world, tmp_path, lambda _: reply(text("done")), context=context) as b:
        session_id = (await b.send(f"one {LONG}"))["session_id"]
        await b.over(session_id)
        context.change = lambda answer: {**answer, "messages": []}
        await b.send(f"two {LONG}", session_id=session_id)
        assert (await b.over(session_id, 2)).status == "failed"
        context.change = lambda answer: answer
        await b.send("three", session_id=session_id)
        assert (await b.over(session_id, 3)).status == "completed"
        assert context.asked[2]["options"]["previous_summary"] == "summary, 2 more (1 replies)"


@pytest.mark.requirement("loop.context.failure")
@pytest.mark.parametrize(
    ("how", "says"),
    [
        (CodedError("context/model_unresolved", "could not resolve model limits"), "could not resolve model limits"),
        (BusError("function_not_found", "Function router::models::budget not found", "router::models::budget"), None),
        ({"messages": "none"}, "messages"),
        ({"messages": [7]}, "no message"),
        ({"applied": {"compacted": True, "summary": "s", "tail_start_index": 99}}, "tail_start_index"),
    ],
    ids=["error", "lacks", "shape", "message", "index"],
)
async def test_any_other_failure_of_the_manager_fails_the_step(world, tmp_path, how, says):
    context = PlayedContext()

    async def refuse(_):
        raise how

    if isinstance(how, BusError):
        context.before = refuse
    else:
        context.change = lambda answer: {**answer, **how}
    async with bench(world, tmp_path, lambda _: reply(text("x")), context=context) as b:
        sent = await b.send()
        entry = await driven(world, failed(b, sent))
        assert (entry["code"], entry["phase"]) == ("harness.turn_internal", "execution")
        assert "context::assemble" in entry["detail"]
        assert (says or "") in entry["detail"]
        assert b.requests == []


@pytest.mark.requirement("loop.context.timeout")
async def test_a_manager_that_hangs_is_given_the_configured_time_as_it_is_now(world, tmp_path):
    context = PlayedContext()
    context.before = never
    async with bench(world, tmp_path, lambda _: reply(text("x")), context=context) as b:
        await b.call("configuration::set", id="harness", value={"context_timeout_ms": 50})
        await until(lambda: b.harness._parts.settings.value.context_timeout_ms == 50)
        sent = await b.send()
        await until(lambda: context.asked)
        entry = await driven(world, failed(b, sent))
        assert entry["code"] == "harness.turn_internal"
        assert "TIMEOUT" in entry["detail"]


@pytest.mark.requirement("loop.context.stop")
async def test_a_stop_ends_the_wait_for_the_manager(world, tmp_path, stepwise):
    context = PlayedContext()
    context.before = never
    async with bench(world, tmp_path, lambda _: reply(text("x")), stepwise=stepwise, context=context) as b:
        sent = await b.send()
        await until(lambda: context.asked)
        assert await b.call("harness::stop", session_id=sent["session_id"]) == {"stopping": True}
        record = await b.over(sent["session_id"])
        assert (record.status, record.turn_count) == ("cancelled", 0)
        assert b.requests == []


@pytest.mark.requirement("loop.context.absent")
async def test_a_manager_may_come_and_go_while_the_harness_runs(world, tmp_path):
    context = PlayedContext(usable=3000)
    async with bench(world, tmp_path, lambda _: reply(text("done"))) as b:
        session_id = (await b.send(f"one {LONG}"))["session_id"]
        await b.over(session_id)
        assert "context" not in b.completed[0]
        assert await b.call("state::get", scope="harness_context", key=session_id) is None
        manager = b.engine.attach("context-manager")
        context.serve(manager)
        await known(b, "context::assemble")
        await b.send(f"two {LONG}", session_id=session_id)
        await b.over(session_id, 2)
        assert len(context.asked) == 1
        assert b.completed[1]["context"]["compacted"] is True
        context.leave()
        await known(b, "context::assemble", there=False)
        await b.send("three", session_id=session_id)
        await b.over(session_id, 3)
        assert len(context.asked) == 1
        assert texts(b.requests[2]["messages"]) == [f"two {LONG}", "done", "three"]
        assert b.requests[2]["system_prompt"] == b.requests[1]["system_prompt"], "its summary stays"
        status = await b.call("harness::status", session_id=session_id, verbose=True)
        assert status["context"] == b.completed[1]["context"], "as an earlier step stored it"
        assert "context" not in b.completed[2]


class Unreadable:
    """A bus whose engine never lists the registry again after the start has seen the ids."""

    def __init__(self, inner):
        self._inner = inner
        self.listed = 0

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def call(self, fn, data, **options):
        self.listed += fn == LIST and not data
        if fn == LIST and not data and self.listed > 1:
            raise BusError("TIMEOUT", f"{fn}: no answer in time", fn)
        return await self._inner.call(fn, data, **options)


@pytest.mark.requirement("loop.context.unknown")
@pytest.mark.parametrize("there", [True, False])
async def test_a_manager_that_no_reading_of_the_registry_has_shown_is_asked_all_the_same(world, tmp_path, there):
    b = LoopBench(world, tmp_path, lambda _: reply(text("done")))
    b.context = context = PlayedContext() if there else None
    b.wrap = Unreadable
    await b.boot()
    try:
        sent = await b.send("hello")
        assert (await b.over(sent["session_id"])).status == "completed"
        assert len(b.requests) == 1
        assert ("context" in b.completed[0]) is there
        assert context is None or len(context.asked) == 1
    finally:
        await b.close()


@pytest.mark.requirement("loop.context.absent")
@pytest.mark.parametrize("back", [False, True])
async def test_a_manager_that_goes_while_it_is_asked_is_asked_once_more(world, tmp_path, back):
    context = PlayedContext()
    async with bench(world, tmp_path, lambda _: reply(text("x")), context=context) as b:
        managers = []

        async def gone(_):
            if managers:
                return
            managers.append(True)
            context.leave()
            if back:
                context.serve(b.engine.attach("context-manager-again"))
            raise BusError("invocation_stopped", "worker disconnected", "context::assemble")

        context.before = gone
        sent = await b.send()
        assert (await b.over(sent["session_id"])).status == "completed"
        assert len(context.asked) == (2 if back else 1)
        assert len(b.requests) == 1
        assert ("context" in b.completed[0]) is back


@pytest.mark.requirement("loop.context.snapshot")
async def test_what_a_request_was_made_of_is_kept_told_and_shown(world, tmp_path, stepwise):
    context, sizes = PlayedContext(), []
    context.change = lambda answer: sizes.append(answer["token_count"]) or answer
    usage = {"input": 7, "output": 5, "cache_read": 3, "cache_write": 2, "cost_usd": 0.25}
    model = steps(reply(call("c", "demo::do", {}), usage=usage), reply(text("end"), usage=usage))
    async with bench(world, tmp_path, model, stepwise=stepwise, context=context, do=lambda _: 1) as b:
        session_id = (await b.send())["session_id"]
        record = await b.over(session_id)
        snapshot = b.completed[0]["context"]
        ContextSnapshotV1.model_validate(snapshot)
        assert snapshot == record.context_snapshot
        assert snapshot == await b.call("state::get", scope="harness_context", key=session_id)
        assert (await b.call("harness::status", session_id=session_id, verbose=True))["context"] == snapshot
        metrics = await b.call("harness::metrics", session_id=session_id)
        assert metrics["by_session"][0]["context"] == snapshot
        assert (snapshot["step"], snapshot["model"], snapshot["provider"]) == (1, "m", "test")
        assert (snapshot["total"], snapshot["free"]) == (12, 100_000 - 12), "billed, not counted"
        assert (snapshot["session_cost_usd"], snapshot["usage"]) == (0.5, usage)
        assert snapshot["estimator"] == "heuristic"
        assert snapshot["compacted"] is False and "summarized_head_tokens" not in snapshot
        assert snapshot["prompt_surface_digest"] == b.requests[1]["cache_intent"]["surface_digest"]
        categories = snapshot["categories"]
        assert categories["overhead"] == 65 and categories["hook_guidance"] == 0 and categories["skills"] == 0
        counted = categories["system_prompt"] + categories["tools"] + sum(categories["messages"].values()) + 65
        assert counted == sizes[1]
        await b.send("again", session_id=session_id)
        await b.over(session_id, 2)
        assert b.completed[1]["context"]["session_cost_usd"] == 0.75, "the session's, not the turn's"


@pytest.mark.requirement("loop.context.snapshot")
async def test_a_snapshot_that_cannot_be_stored_fails_no_turn(world, tmp_path):
    context = PlayedContext()
    async with bench(world, tmp_path, lambda _: reply(text("x")), context=context) as b:
        writing = b.harness._parts.loop._writes._parts.contexts
        writing.put = lambda key, row: Call("state::set", {"scope": key})
        session_id = (await b.send())["session_id"]
        record = await b.over(session_id)
        assert record.status == "completed"
        assert record.context_snapshot is not None
        assert await b.call("state::get", scope="harness_context", key=session_id) is None


@pytest.mark.requirement("loop.context.status")
async def test_a_long_assembly_of_any_step_is_shown(world, tmp_path):
    context = PlayedContext()
    release = asyncio.Event()

    async def slow(request):
        if len(context.asked) == 2:
            await release.wait()

    context.before = slow
    model = steps(reply(call("c", "demo::do", {})), reply(text("end")))
    async with bench(world, tmp_path, model, context=context, do=lambda _: 1) as b:
        seen: list[tuple[str, str | None]] = []

        async def changed(data, _):
            seen.append((data["status"], data.get("status_reason")))

        b.client.serve(spec("client::status"), changed)
        b.client.bind("session::status-changed", "client::status", {})
        sent = await b.send()
        await until(lambda: len(context.asked) == 2)
        await until(lambda: seen[-1] == ("working", "waiting for m"))
        await world.advance(0.25)
        await until(lambda: seen[-1] == ("working", "preparing context"))
        release.set()
        await b.over(sent["session_id"])
        await until(lambda: seen[-1][0] == "done")
        assert [reason for status, reason in seen if status == "working"] == [
            "preparing context",
            "waiting for m",
            "preparing context",
            "waiting for m",
        ]


@pytest.mark.requirement("loop.context.ledger")
async def test_a_contract_that_the_manager_cut_out_is_shown_again(world, tmp_path):
    context = PlayedContext()
    asks = {"function_ids": ["demo::do"]}
    model = steps(
        reply(call("c1", "engine::functions::info", asks)),
        reply(call("c2", "engine::functions::info", asks)),
        reply(call("c3", "engine::functions::info", asks)),
        reply(text("end")),
    )

    def cut(answer):
        if len(context.asked) < 3:
            return answer
        shown = [
            {**m, "content": [text("pruned")]} if m["role"] == "function_result" else m for m in answer["messages"]
        ]
        return {**answer, "messages": shown}

    context.change = cut
    async with bench(world, tmp_path, model, context=context, do=lambda _: 1) as b:
        options = {"functions": {"allow": ["*"]}}
        sent = await b.send(options=options)
        await b.over(sent["session_id"])
        path = await b.path_of(sent["session_id"])
        results = [i["message"] for i in path if i.get("message", {}).get("role") == "function_result"]
        unchanged = ["unchanged_in_context" in r["content"][0]["text"] for r in results]
        assert unchanged == [False, True, False]


@pytest.mark.requirement("loop.context.orphans")
async def test_a_call_without_a_result_is_answered_in_the_assembled_copy(world, tmp_path, stepwise):
    context = PlayedContext()
    model = steps(reply(text("first")), reply(text("end")))
    async with bench(world, tmp_path, model, stepwise=stepwise, context=context) as b:
        session_id = (await b.send())["session_id"]
        await b.over(session_id)
        broken = {
            "role": "assistant",
            "content": [{"type": "function_call", "id": "lost", "function_id": "demo::do", "arguments": {}}],
            "stop_reason": "function_call",
            "model": "m",
            "provider": "test",
            "timestamp": 1,
        }
        await b.call("session::append", session_id=session_id, message=broken)
        await b.send("go on", session_id=session_id)
        await b.over(session_id, 2)
        assert [m["role"] for m in context.asked[1]["messages"]] == ["user", "assistant", "assistant", "user"]
        roles = [m["role"] for m in b.requests[1]["messages"]]
        assert roles == ["user", "assistant", "assistant", "function_result", "user"]
        assert context.counted[0]["messages"] == b.requests[1]["messages"]


@pytest.mark.requirement("loop.context.compaction")
@pytest.mark.parametrize("point", [LoopPoint.BEFORE_ASK, LoopPoint.AFTER_ASK, LoopPoint.STREAMED])
async def test_a_compaction_survives_death_once_it_was_sent(world, tmp_path, point):
    context = PlayedContext(usable=3000)
    async with bench(world, tmp_path, lambda _: reply(text("done")), context=context) as b:
        session_id = (await b.send(f"one {LONG}"))["session_id"]
        await b.over(session_id)
        world.points.make = lambda _: (b.crash(), asyncio.CancelledError())[1]
        world.points.crash_at(1, point)
        await b.send(f"two {LONG}", session_id=session_id)
        await until(lambda: world.points._crash is None, what=f"death at {point}")
        await settle()
        await b.boot()
        await b.over(session_id, 2)
        path = await b.path_of(session_id)
        assert len(entries(path, "compaction")) == 1
        assert texts(b.requests[-1]["messages"]) == [f"two {LONG}"]
        assert b.requests[-1]["system_prompt"].endswith("summary, 2 more (1 replies)")
