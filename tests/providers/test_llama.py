"""A real model on llama.cpp: both APIs, text, a chain of calls, thinking, limits, abort."""

from __future__ import annotations

import asyncio

import pytest

from iii_testing.waiting import until_async

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
PLAIN = {"openai": {"temperature": 0, "chat_template_kwargs": {"enable_thinking": False}}}
TOOL = {
    "name": "demo::add",
    "description": "Adds",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
}


@pytest.fixture(params=["", "/responses"], ids=["chat", "responses"])
def base_url(request, llama):
    return llama.base_url + request.param


@pytest.mark.requirement("providers.openai.real_model")
async def test_text_streams_in_tokens_with_usage(base_url, start):
    async with start(base_url, key="") as stack:
        got = await stack.chat("((say Grüße from here))", model="smollm2", provider_options=PLAIN)
        models = (await stack.bus.call("router::models::list", {}))["models"]
    assert got.text == "Grüße from here"
    assert got.kinds.count("text_delta") > 1
    assert got.response["usage"]["output"] > 1
    assert [(model["id"], model["context_window"]) for model in models] == [("smollm2", 8192)]


@pytest.mark.requirement("providers.openai.real_model")
async def test_a_chain_of_calls(base_url, start):
    user = {
        "role": "user",
        "content": [{"type": "text", "text": '((call demo__add {"a": 1, "b": 2}))'}],
        "timestamp": 1,
    }
    async with start(base_url, key="") as stack:
        request = {"model": "smollm2", "tools": [TOOL], "provider_options": PLAIN}
        got = await stack.chat([user], **request)
        assert [(call["function_id"], call["arguments"]) for call in got.calls] == [("demo::add", {"a": 1, "b": 2})]
        assert got.last["stop_reason"] == "function_call"
        content = [{"type": "text", "text": "((say The sum is 3))"}]
        result = {"role": "function_result", "function_call_id": got.calls[0]["id"], "function_id": "demo::add"}
        got = await stack.chat([user, got.last, {**result, "content": content, "timestamp": 2}], **request)
    assert got.text == "The sum is 3"


@pytest.mark.requirement("providers.openai.real_model")
async def test_thinking_is_kept_apart_and_may_run_into_the_ceiling(base_url, start):
    async with start(base_url, key="") as stack:
        options = {"openai": {"temperature": 0}}
        got = await stack.chat("((say Hi))", model="smollm2", provider_options=options, max_output_tokens=60)
    assert got.last["content"][0]["type"] == "thinking"
    assert got.response["ok"]


@pytest.mark.requirement("providers.openai.real_model")
async def test_too_long_a_prompt_is_an_overflow(base_url, start):
    async with start(base_url, key="") as stack:
        got = await stack.chat("x " * 20_000, model="smollm2")
    assert got.response["error"]["code"] == "router/context_overflow"


@pytest.mark.requirement("providers.openai.real_model")
async def test_an_abort_frees_the_server(base_url, start):
    async with start(base_url, key="") as stack:
        words = "((say " + "on and on " * 60 + "))"
        running = asyncio.create_task(stack.chat(words, model="smollm2", provider_options=PLAIN, request_id="r"))

        async def aborted() -> bool:
            return (await stack.bus.call("router::abort", {"request_id": "r"}))["aborted"]

        await until_async(aborted)
        got = await asyncio.wait_for(running, 10)
        assert got.last["stop_reason"] == "aborted"
        got = await stack.chat("((say still there))", model="smollm2", provider_options=PLAIN)
    assert got.text == "still there"


@pytest.mark.requirement("providers.anthropic.real_model")
async def test_the_messages_api_of_a_real_model_answers_and_calls(llama, start_anthropic):
    plain = {"anthropic": PLAIN["openai"]}
    said = '((call demo__add {"a": 1, "b": 2}))'
    request = {"model": "smollm2", "provider": "anthropic", "tools": [TOOL], "provider_options": plain}
    asked = {"role": "user", "content": [{"type": "text", "text": said}], "timestamp": 1}
    async with start_anthropic(llama.base_url, key="") as stack:
        got = await stack.chat([asked], **request)
        assert [(call["function_id"], call["arguments"]) for call in got.calls] == [("demo::add", {"a": 1, "b": 2})]
        assert got.last["stop_reason"] == "function_call"
        content = [{"type": "text", "text": "((say The sum is 3))"}]
        result = {"role": "function_result", "function_call_id": got.calls[0]["id"], "function_id": "demo::add"}
        got = await stack.chat([asked, got.last, {**result, "content": content, "timestamp": 2}], **request)
    assert got.text == "The sum is 3"
    assert got.response["usage"]["output"] > 0
