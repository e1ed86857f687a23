"""The scripted provider and its demo (siblings 17.4), through the router on the embedded engine."""

from __future__ import annotations

import asyncio
import json

import pytest

from iii_siblings.providers.scripted.demo import demo_step
from iii_testing.model_stack import model_stack, user
from iii_testing.played import Played
from iii_testing.waiting import driven, until_async

pytestmark = pytest.mark.anyio
WRAPPER = {"name": "agent_trigger", "description": "calls", "parameters": {"type": "object"}}


@pytest.fixture
async def stack(tmp_path, world):
    async with model_stack(tmp_path, world) as running:
        yield running


def assistant(*blocks: dict) -> dict:
    return {
        "role": "assistant",
        "content": list(blocks),
        "stop_reason": "end",
        "model": "m",
        "provider": "p",
        "timestamp": 1,
    }


def result(text: str, **fields) -> dict:
    content = [{"type": "text", "text": text}]
    message = {"role": "function_result", "function_call_id": "c", "function_id": "engine::functions::list"}
    return {**message, "content": content, "timestamp": 1, **fields}


@pytest.mark.requirement("providers.scripted.actions")
async def test_every_action(stack, world):
    got = await driven(
        world,
        stack.script(
            {"thinking": "let me see"},
            {"text": "I call two functions."},
            {"delay_ms": 2000},
            {"ping": True},
            {"call": {"function": "a::b", "payload": {"x": 1}}},
            {"native_call": {"function_id": "c::d", "arguments": {"y": 2}, "id": "mine"}},
            {"usage": {"input": 3, "output": 4}},
        ),
    )
    assert got.last["content"] == [
        {"type": "thinking", "text": "let me see"},
        {"type": "text", "text": "I call two functions."},
        {
            "type": "function_call",
            "id": "call_0_1",
            "function_id": "agent_trigger",
            "arguments": {"function": "a::b", "payload": {"x": 1}},
        },
        {"type": "function_call", "id": "mine", "function_id": "c::d", "arguments": {"y": 2}},
    ]
    assert (got.last["stop_reason"], got.response["usage"]) == ("function_call", {"input": 3, "output": 4})
    assert got.kinds.count("text_delta") == 4
    assert "ping" in got.kinds
    assert world.clock.monotonic() >= 2


@pytest.mark.requirement("providers.scripted.actions")
async def test_a_call_takes_the_form_that_is_offered(stack):
    native = {"name": "a::b", "description": "", "parameters": {}}
    call = {"call": {"function": "a::b", "payload": {"x": 1}}}
    got = await stack.script(call, tools=[native])
    assert (got.calls[0]["function_id"], got.calls[0]["arguments"]) == ("a::b", {"x": 1})
    got = await stack.script(call, tools=[native, WRAPPER])
    assert got.calls[0]["function_id"] == "agent_trigger"


@pytest.mark.requirement("providers.scripted.steps")
async def test_the_step_follows_from_the_transcript(stack):
    options = {"scripted": {"steps": [{"emit": [{"text": "one"}]}, {"emit": [{"text": "two"}]}]}}
    texts = []
    for said in range(4):
        messages = [user("x"), *[assistant()] * said]
        got = await stack.chat(messages, provider="scripted", provider_options=options)
        texts.append(got.text)
    assert texts == ["one", "two", "two", "two"]


@pytest.mark.requirement("providers.scripted.broken")
async def test_ways_to_break(stack, world):
    got = await stack.script({"text": "a"}, {"error": {"kind": "auth_expired", "message": "no"}})
    assert (got.last["error_kind"], got.last["error_message"], got.text) == ("auth_expired", "no", "a")
    got = await stack.script({"text": "a"}, {"cut": True})
    assert got.response["error"]["code"] == "router/stream_incomplete"
    got = await stack.script({"text": "a"}, {"stop_reason": "length"})
    assert got.last["stop_reason"] == "length"
    got = await driven(world, stack.script({"text": "a"}, {"hang": True}))
    assert got.response["error"]["code"] == "router/stream_idle_timeout"
    limited = {"error": {"kind": "rate_limited", "retry_after_ms": 9000}}
    before = world.clock.monotonic()
    got = await driven(world, stack.script(limited))
    assert (got.response["error"]["kind"], world.clock.monotonic() - before >= 18) == ("rate_limited", True)


@pytest.mark.requirement("providers.scripted.refused")
@pytest.mark.parametrize(
    ("script", "text"),
    [
        ({"steps": []}, "`steps` is empty"),
        ({"steps": [{"emit": [{}]}]}, "`steps.0.emit.0` needs exactly one of"),
        ({"steps": [{"emit": [{"text": "a", "ping": True}]}]}, "needs exactly one of"),
        ({"steps": [{"emit": [{"text": 5}]}]}, "$.steps[0].emit[0].text"),
        ({"steps": [{"emit": [{"shout": "a"}]}]}, "shout"),
        ({"step": []}, "step"),
    ],
)
async def test_a_wrong_script_is_refused_by_its_place(stack, script, text):
    got = await stack.chat(provider="scripted", provider_options={"scripted": script})
    assert got.kinds == ["error"]
    assert text in got.response["error"]["message"]
    assert got.response["error"]["kind"] == "permanent"


@pytest.mark.requirement("providers.scripted.refused")
async def test_a_model_without_a_script_is_refused(stack):
    got = await stack.chat(provider="scripted", model="other")
    assert "has no script" in got.response["error"]["message"]


@pytest.mark.requirement("providers.scripted.file")
async def test_a_script_named_by_the_catalogue(stack, tmp_path):
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"steps": [{"emit": [{"text": "from a file"}]}]}))
    model = {"id": "filed", "provider": "scripted", "context_window": 9, "max_output_tokens": 9, "script": str(path)}
    stack.router._providers.catalogue.replace("scripted", [model])
    assert (await stack.chat(model="filed")).text == "from a file"
    path.write_text("{")
    stack.router._providers.catalogue.replace("scripted", [model])
    got = await stack.chat(model="filed")
    assert "cannot be read" in got.response["error"]["message"]


@pytest.mark.requirement("providers.abort")
async def test_an_abort_ends_the_provider_stream_itself(stack):
    request = {"provider_options": {"steps": [{"emit": [{"text": "so far"}, {"hang": True}]}]}, "resolution_key": "k"}
    running = asyncio.create_task(stack.chat(fn="provider::scripted::stream", **request))
    aborted = {"request_id": "k"}

    async def stopped() -> bool:
        return (await stack.bus.call("provider::scripted::abort", aborted))["aborted"]

    await until_async(stopped)
    got = await running
    assert got.kinds[-1] == "done"
    assert (got.last["stop_reason"], got.text) == ("aborted", "so far")
    assert await stack.bus.call("provider::scripted::abort", aborted) == {"aborted": False}


@pytest.mark.requirement("providers.demo.offered")
async def test_the_demo_is_offered_while_nothing_else_is_configured(stack):
    async def offered() -> bool:
        models = (await stack.bus.call("router::models::list", {"provider": "scripted"}))["models"]
        return [model["id"] for model in models] == ["demo"]

    assert await offered()
    other = await Played(stack.engine.attach("other"), "other").register(credential_env_var="NO_KEY")
    assert await offered()
    await stack.bus.call(
        "configuration::set", {"id": "llm-router", "value": {"providers": {"other": {"api_key": "k"}}}}
    )

    async def withdrawn() -> bool:
        return not await offered()

    await until_async(withdrawn)
    await stack.bus.call("router::provider::unregister", {"id": "other", "token": other.token})
    assert (await stack.script({"text": "scripts still run"})).text == "scripts still run"


@pytest.mark.requirement("providers.demo.loop")
async def test_the_demo_looks_around_uses_the_result_and_says_what_to_try(stack, world):
    first = await driven(world, stack.chat("hello", model="demo", tools=[WRAPPER]))
    assert first.calls[0]["arguments"]["function"] == "engine::functions::list"
    functions = {"functions": [{"function_id": "demo::add"}, {"function_id": "engine::health::check"}]}
    messages = [user("hello"), first.last, result(json.dumps(functions))]
    second = await driven(world, stack.chat(messages, model="demo", tools=[WRAPPER]))
    assert second.last["stop_reason"] == "end"
    assert "2 functions" in second.text
    assert "`demo::add`" in second.text
    assert "OPENAI_API_KEY" in second.text


@pytest.mark.requirement("providers.demo.loop")
async def test_the_demo_calls_what_it_is_asked_to(stack, world):
    got = await driven(world, stack.chat('please call demo::add {"a": 1}', model="demo", tools=[WRAPPER]))
    assert got.calls[0]["arguments"]["function"] == "demo::add"
    assert got.calls[0]["arguments"]["payload"] == {"a": 1}
    messages = [user("call demo::add {}"), got.last, result("denied by policy", is_error=True)]
    assert "denied by policy" in (await driven(world, stack.chat(messages, model="demo", tools=[WRAPPER]))).text


@pytest.mark.requirement("providers.demo.loop")
async def test_the_demo_shows_a_long_result_as_a_block_that_says_it_goes_on(stack, world):
    made = await driven(world, stack.chat("call demo::add {}", model="demo", tools=[WRAPPER]))
    messages = [user("call demo::add {}"), made.last, result("x" * 601)]
    said = (await driven(world, stack.chat(messages, model="demo", tools=[WRAPPER]))).text
    assert f"\n```\n{'x' * 600}…\n```\n" in said


@pytest.mark.requirement("providers.demo.loop")
async def test_the_demo_without_functions_says_so(stack, world):
    got = await driven(world, stack.chat("hi", model="demo"))
    assert got.calls == []
    assert "iii-stack chat" in got.text


@pytest.mark.requirement("providers.demo.loop")
def test_the_demo_takes_native_functions_and_any_transcript():
    step = demo_step([user("hi")], {"engine::functions::list"})
    assert step.emit[-1].call.function == "engine::functions::list"
    assert demo_step([], set()).emit[0].text
    assert demo_step([user("x"), result("no json")], set()).emit[0].text
    assert demo_step([user("x"), result("", details={"functions": ["a::b"]})], set()).emit[0].text


@pytest.mark.requirement("providers.scripted.usage")
@pytest.mark.parametrize("odd", [-5, "5", 1.5, True, None])
async def test_a_count_that_is_none_is_left_out_of_the_usage(stack, odd):
    got = await stack.script({"usage": {"input": odd, "output": 4, "cost_usd": -1}}, {"text": "x"})
    assert got.last["usage"] == got.response["usage"] == {"output": 4}
