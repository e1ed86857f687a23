"""The provider `anthropic` over HTTP: aimock's scripts, llmock's faults (siblings 5.6, 6, 7)."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from iii_kit.errors import BusError
from iii_kit.world import real_world
from iii_testing.model_stack import model_stack, user
from iii_testing.waiting import until_async

pytestmark = pytest.mark.anyio
KEY_SHOWN = "sk-for-tests-only"
MODEL = "claude-sonnet-4-5"
CLAUDE = {"model": MODEL, "provider": "anthropic"}
TOOLS = [
    {"name": name, "description": f"Does {name}", "parameters": {"type": "object", "properties": {}}}
    for name in ("math::add", "math::sub")
]


def fixture(said: str, response: dict, **match) -> dict:
    return {"match": {"userMessage": said, **match}, "response": response}


def result(call: dict, text: str = "3") -> dict:
    content = [{"type": "text", "text": text}]
    return {
        "role": "function_result",
        "function_call_id": call["id"],
        "function_id": call["function_id"],
        "content": content,
        "timestamp": 1,
    }


async def aborted(stack) -> bool:
    return (await stack.bus.call("router::abort", {"request_id": "r"}))["aborted"]


async def row(stack) -> dict:
    rows = (await stack.bus.call("router::provider::list", {}))["providers"]
    return next(row for row in rows if row["id"] == "anthropic")


@pytest.mark.requirement("providers.anthropic.live")
async def test_parallel_calls_behind_signed_thinking_go_round(aimock, start_anthropic):
    calls = [
        {"id": "toolu_1", "name": "math__add", "arguments": {"a": 1}},
        {"id": "toolu_2", "name": "math__sub", "arguments": '{"a": "ü"}'},
    ]
    thought = {"reasoning": "I add.", "reasoningSignature": "sig-1", "content": "I compute.", "toolCalls": calls}
    usage = {"input_tokens": 50, "output_tokens": 9}
    first = fixture("compute", {**thought, "usage": usage}, hasToolResult=False)
    last = fixture("compute", {"content": "Three."}, hasToolResult=True)
    with aimock(first, last) as server:
        async with start_anthropic(server.url) as stack:
            request = {**CLAUDE, "tools": TOOLS, "system_prompt": "Be brief.", "thinking_level": "low"}
            got = await stack.chat("compute", **request)
            assert [block["type"] for block in got.last["content"]] == ["thinking", "text", *["function_call"] * 2]
            assert got.last["content"][0] == {"type": "thinking", "text": "I add.", "signature": "sig-1"}
            assert [(call["function_id"], call["arguments"]) for call in got.calls] == [
                ("math::add", {"a": 1}),
                ("math::sub", {"a": "ü"}),
            ]
            assert got.last["stop_reason"] == "function_call"
            assert (got.response["usage"]["input"], got.response["usage"]["output"]) == (50, 9)
            transcript = [user("compute"), got.last, *map(result, reversed(got.calls))]
            assert (await stack.chat(transcript, **request)).text == "Three."
        journal = server.ask("/__aimock/journal")[-1]
    assert "Be brief." in json.dumps(journal["body"])
    assert KEY_SHOWN not in json.dumps(journal["body"])


@pytest.mark.requirement("providers.anthropic.thinking_kept")
async def test_redacted_thinking_comes_through_and_goes_back(aimock, start_anthropic):
    response = {
        "reasoning": "Hm.",
        "reasoningSignature": "sig",
        "redactedThinking": ["b3BhcXVl"],
        "toolCalls": [{"id": "toolu_1", "name": "math__add", "arguments": {}}],
    }
    first = fixture("hide", response, hasToolResult=False)
    with aimock(first, fixture("hide", {"content": "Done."}, hasToolResult=True)) as server:
        async with start_anthropic(server.url) as stack:
            request = {**CLAUDE, "tools": TOOLS, "thinking_level": "high"}
            got = await stack.chat("hide", **request)
            kinds = [block["type"] for block in got.last["content"]]
            assert {"thinking", "redacted_thinking"} <= set(kinds)
            after = await stack.chat([user("hide"), got.last, result(got.calls[0])], **request)
    assert after.text == "Done."


@pytest.mark.requirement("providers.anthropic.live_cut")
@pytest.mark.parametrize("chunks", range(1, 11))
async def test_a_stream_cut_over_http_keeps_its_text(aimock, start_anthropic, chunks):
    text = "one two three four five six seven eight"
    cut = fixture("cut", {"content": text}) | {"chunkSize": 4, "latency": 1, "truncateAfterChunks": chunks}
    with aimock(cut) as server:
        async with start_anthropic(server.url) as stack:
            got = await stack.chat("cut", **CLAUDE)
    streamed = "".join(frame.get("delta", "") for frame in got.frames if frame["type"] == "text_delta")
    assert got.text == streamed
    assert text.startswith(streamed)
    assert streamed == text if got.response["ok"] else got.response["error"]["kind"] == "transient"


@pytest.mark.requirement("providers.anthropic.live_abort")
async def test_an_abort_stops_a_stream_that_runs(aimock, start_anthropic):
    slow = fixture("slow", {"content": "word " * 400}) | {"chunkSize": 5, "latency": 20}
    with aimock(slow) as server:
        async with start_anthropic(server.url) as stack:
            running = asyncio.create_task(stack.chat("slow", **CLAUDE, request_id="r"))
            await until_async(lambda: aborted(stack))
            got = await asyncio.wait_for(running, 5)
    assert got.last["stop_reason"] == "aborted"


class Faults:
    """llmock with its fault queue."""

    def __init__(self, server) -> None:
        self.server = server
        self.base_url = server.url + "/anthropic"

    def queue(self, *behaviors: dict) -> None:
        of_streams = [{"match": {"stream": True}, **behavior} for behavior in behaviors]
        self.server.ask("/_llmock/scenario", {"behaviors": of_streams})

    def judge(self) -> None:
        verdict = self.server.ask("/_llmock/verdict")
        assert verdict["passed"], verdict


@pytest.fixture
def faults(llmock_process):
    llmock_process.ask("/_llmock/reset", {})
    return Faults(llmock_process)


async def until_whole(stack, text: str, **request):
    """What a loop above the router does: the same request again after a failure that may be tried again."""
    seen = []
    for _ in range(4):
        seen.append(await stack.chat(text, **CLAUDE, **request))
        if seen[-1].response["ok"] or not seen[-1].response["error"]["retryable"]:
            break
    return seen


@pytest.mark.requirement("providers.anthropic.live")
async def test_an_answer_and_a_call_with_its_result(faults, start_anthropic):
    arguments = {"payload": {"é": [1]}}
    faults.queue({"type": "reply", "tool_calls": [{"name": "math__add", "arguments": arguments}]})
    async with start_anthropic(faults.base_url) as stack:
        (got,) = await until_whole(stack, "look around", tools=TOOLS)
        assert [(call["function_id"], call["arguments"]) for call in got.calls] == [("math::add", arguments)]
        assert got.response["usage"]["output"] > 0
        after = await stack.chat([user("look around"), got.last, result(got.calls[0])], **CLAUDE, tools=TOOLS)
    assert after.text
    assert after.last["stop_reason"] == "end"
    faults.judge()


@pytest.mark.requirement("providers.anthropic.live_errors")
@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        (400, "router/provider_rejected", "anthropic rejected the request (HTTP 400)"),
        (401, "router/provider_auth_expired", "anthropic authentication failed (HTTP 401); refresh credentials"),
        (403, "router/provider_auth_expired", "anthropic authentication failed (HTTP 403); refresh credentials"),
    ],
)
async def test_an_error_that_no_retry_mends_is_told_at_once(faults, start_anthropic, status, code, text):
    faults.queue({"type": "fail", "status": status, "message": "what the server says"})
    async with start_anthropic(faults.base_url) as stack:
        (got,) = await until_whole(stack, f"refuse with {status}")
    assert (got.response["error"]["code"], got.response["error"]["message"]) == (code, text)
    faults.judge()


@pytest.mark.requirement("providers.anthropic.live_errors")
@pytest.mark.parametrize("failure", [{"status": 429, "retry_after": 1.5}, {"status": 500}, {"status": 529}])
async def test_a_server_that_is_busy_is_asked_again_after_the_wait_it_names(faults, start_anthropic, failure):
    faults.queue({"type": "fail", **failure}, {"type": "reply", "text": "now"})
    async with start_anthropic(faults.base_url) as stack:
        before = time.monotonic()
        (got,) = await until_whole(stack, f"after {failure}")
        assert time.monotonic() - before >= failure.get("retry_after", 0)
    assert got.text == "now"
    faults.judge()


@pytest.mark.requirement("providers.anthropic.live_cut")
@pytest.mark.parametrize("fault", ["disconnect", "truncate", "malformed"])
async def test_a_broken_stream_is_never_taken_for_an_answer(faults, start_anthropic, fault):
    text = "alpha beta gamma delta epsilon zeta eta theta"
    faults.queue(
        {"type": "reply", "text": text, "times": 4}, {"type": "stream_fault", "kind": fault, "after_chunks": 3}
    )
    async with start_anthropic(faults.base_url) as stack:
        seen = await until_whole(stack, f"broken by {fault}")
    assert seen[-1].text == text
    for broken in seen[:-1]:
        assert broken.response["error"]["kind"] == "transient"
        assert text.startswith(broken.text)
    faults.judge()


@pytest.mark.requirement("providers.anthropic.live_cut")
async def test_a_server_that_falls_silent_ends_in_a_transient_error(faults, start_anthropic):
    faults.queue({"type": "stream_fault", "kind": "stall", "after_chunks": 3, "stall_seconds": 20})
    async with start_anthropic(faults.base_url, read_timeout_s=0.5) as stack:
        got = await stack.chat("stall", **CLAUDE)
    assert got.response["ok"] or got.last["error_message"] == "anthropic stream was silent for too long"


@pytest.mark.requirement("providers.anthropic.arguments")
async def test_malformed_arguments_over_http_keep_their_text(faults, start_anthropic):
    faults.queue({"type": "tool_fault", "kind": "malformed_arguments"})
    async with start_anthropic(faults.base_url) as stack:
        (got,) = await until_whole(stack, "malformed", tools=TOOLS)
    assert got.calls[0]["arguments"]["_raw"]


@pytest.mark.requirement("providers.anthropic.not_configured")
async def test_without_a_key_nothing_is_offered_and_the_refusal_says_what_to_set(tmp_path):
    async with model_stack(tmp_path, real_world(), {}, with_anthropic=True) as stack:
        assert (await row(stack))["configured"] is False
        with pytest.raises(BusError) as caught:
            await stack.bus.call("router::route", {"model": MODEL})
        assert caught.value.matches("router/no_provider_for_model")
        direct = await stack.chat(fn="provider::anthropic::stream", model=MODEL)
    assert direct.last["error_message"] == (
        "provider anthropic not configured (no api_key in the llm-router entry and ANTHROPIC_API_KEY unset)"
    )


@pytest.mark.requirement("providers.anthropic.discovery")
async def test_models_are_listed_with_prices_and_a_generation_costs_what_they_say(faults, start_anthropic):
    async with start_anthropic(faults.base_url) as stack:
        models = (await stack.bus.call("router::models::list", {"provider": "anthropic"}))["models"]
        got = await stack.chat("what does this cost?", provider="anthropic", model="claude-sonnet-4-6")
    known = {model["id"]: model for model in models}
    assert known["claude-haiku-4-5-20251001"]["pricing"]["cache_write"] == 1.25
    assert known["claude-sonnet-4-6"]["display_name"]
    usage = got.response["usage"]
    assert usage["input"] > 0
    assert usage["cost_usd"] == pytest.approx((usage["input"] * 3 + usage["output"] * 15) / 1e6)
