"""Scripted turns of a server: order of blocks, parallel calls, usage, what was sent (siblings 8)."""

from __future__ import annotations

import asyncio
import json

import pytest

from iii_testing.waiting import until_async

pytestmark = pytest.mark.anyio
TOOLS = [
    {"name": name, "description": f"Does {name}", "parameters": {"type": "object", "properties": {}}}
    for name in ("math::add", "math::sub")
]


def fixture(said: str, response: dict, **match) -> dict:
    return {"match": {"userMessage": said, **match}, "response": response}


def sent(server) -> dict:
    """The body of the last request."""
    return server.ask("/__aimock/journal")[-1]["body"]


async def aborted(stack) -> bool:
    return (await stack.bus.call("router::abort", {"request_id": "r"}))["aborted"]


@pytest.mark.requirement("providers.openai.live")
@pytest.mark.parametrize("path", ["", "/responses"], ids=["chat", "responses"])
async def test_parallel_calls_with_usage(aimock, start, path):
    calls = [
        {"id": "call_1", "name": "math__add", "arguments": {"a": 1, "b": 2}},
        {"id": "call_2", "name": "math__sub", "arguments": '{"a": "ü"}'},
    ]
    usage = {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59, "input_tokens": 50, "output_tokens": 9}
    first = fixture("compute", {"content": "I compute.", "toolCalls": calls, "usage": usage}, hasToolResult=False)
    last = fixture("compute", {"content": "Three."}, hasToolResult=True)
    with aimock(first, last) as server:
        async with start(server.base_url + path) as stack:
            request = {"model": "gpt-5.2", "provider": "openai", "tools": TOOLS, "system_prompt": "Be brief."}
            got = await stack.chat("compute", **request)
            assert got.text == "I compute."
            assert [(call["id"], call["function_id"], call["arguments"]) for call in got.calls] == [
                ("call_1", "math::add", {"a": 1, "b": 2}),
                ("call_2", "math::sub", {"a": "ü"}),
            ]
            assert (got.response["usage"]["input"], got.response["usage"]["output"]) == (50, 9)
            results = [
                {
                    "role": "function_result",
                    "function_call_id": call,
                    "function_id": "math::add",
                    "content": [{"type": "text", "text": call}],
                    "timestamp": 1,
                }
                for call in ("call_2", "call_1")
            ]
            user = {"role": "user", "content": [{"type": "text", "text": "compute"}], "timestamp": 1}
            assert (await stack.chat([user, got.last, *results], **request)).text == "Three."
        body = sent(server)
    order = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    assert order == ["call_1", "call_2"]
    assert json.dumps(body).count("Be brief.") == 1


@pytest.mark.requirement("providers.openai.live")
@pytest.mark.parametrize("path", ["", "/responses"], ids=["chat", "responses"])
async def test_reasoning_comes_before_text(aimock, start, path):
    with aimock(fixture("think", {"reasoning": "Because of this.", "content": "So be it."})) as server:
        async with start(server.base_url + path) as stack:
            got = await stack.chat("think", model="gpt-5.2", provider="openai", thinking_level="low")
        body = sent(server)
    assert [(block["type"], block["text"]) for block in got.last["content"]] == [
        ("thinking", "Because of this."),
        ("text", "So be it."),
    ]
    if body["_endpointType"] == "chat" and not path:
        assert body["reasoning_effort"] == "low"


@pytest.mark.requirement("providers.openai.live_cut")
@pytest.mark.parametrize("chunks", range(1, 11))
async def test_a_stream_cut_over_http_keeps_its_text(aimock, start, chunks):
    text = "one two three four five six seven eight"
    cut = fixture("cut", {"content": text}) | {"chunkSize": 4, "latency": 1, "truncateAfterChunks": chunks}
    with aimock(cut) as server:
        async with start(server.base_url) as stack:
            got = await stack.chat("cut", model="m", provider="openai")
    streamed = "".join(frame.get("delta", "") for frame in got.frames if frame["type"] == "text_delta")
    assert got.text == streamed
    assert text.startswith(streamed)
    if got.response["ok"]:
        assert streamed == text
    else:
        assert got.response["error"]["kind"] == "transient"


@pytest.mark.requirement("providers.openai.live_errors")
async def test_keys_travel_in_the_header_alone(aimock, start, caplog, capfd):
    with aimock(fixture("hello", {"content": "hi"})) as server:
        async with start(server.base_url, key="sk-secret-of-this-test") as stack:
            got = await stack.chat("hello", model="m", provider="openai")
        entry = server.ask("/__aimock/journal")[-1]
    assert got.text == "hi"
    assert "sk-secret-of-this-test" not in json.dumps(entry["body"])
    out = capfd.readouterr()
    assert not any("sk-secret-of-this-test" in text for text in (caplog.text, out.out, out.err))


@pytest.mark.requirement("providers.openai.live_abort")
async def test_an_abort_stops_a_stream_that_runs(aimock, start):
    slow = fixture("slow", {"content": "word " * 400}) | {"chunkSize": 5, "latency": 20}
    with aimock(slow) as server:
        async with start(server.base_url) as stack:
            running = asyncio.create_task(stack.chat("slow", model="m", provider="openai", request_id="r"))
            await until_async(lambda: aborted(stack))
            got = await asyncio.wait_for(running, 5)
            assert got.last["stop_reason"] == "aborted"
            again = asyncio.create_task(stack.chat("slow", model="m", provider="openai", request_id="r"))
            await until_async(lambda: aborted(stack))
            got = await asyncio.wait_for(again, 5)
    assert got.last["stop_reason"] == "aborted"
