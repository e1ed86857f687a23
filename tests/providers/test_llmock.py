"""Faults of a server: retries, waits, broken streams, malformed calls (siblings 5.6, 6, 8)."""

from __future__ import annotations

import time

import pytest

pytestmark = pytest.mark.anyio

WRAPPER = {
    "name": "agent_trigger",
    "description": "Calls a function",
    "parameters": {"type": "object", "properties": {"function": {"type": "string"}}, "required": ["function"]},
}


class Faults:
    """llmock with its fault queue; every API that the provider knows."""

    def __init__(self, server, base_url: str) -> None:
        self.server = server
        self.base_url = base_url

    def queue(self, *behaviors: dict) -> None:
        of_streams = [{"match": {"stream": True}, **behavior} for behavior in behaviors]
        self.server.ask("/_llmock/scenario", {"behaviors": of_streams})

    @property
    def attempts(self) -> int:
        """Generations that were asked for."""
        answer = self.server.ask("/_llmock/requests")
        rows = answer["requests"] if isinstance(answer, dict) else answer
        return sum(row["method"] == "POST" for row in rows)

    @property
    def verdict(self) -> dict:
        return self.server.ask("/_llmock/verdict")


@pytest.fixture(params=["", "/responses"], ids=["chat", "responses"])
def faults(request, llmock_process):
    llmock_process.ask("/_llmock/reset", {})
    return Faults(llmock_process, llmock_process.base_url + request.param)


async def until_whole(stack, text: str, **request):
    """What a loop above the router does: the same request again after a transient failure, with the wait it names."""
    seen = []
    for _ in range(4):
        got = await stack.chat(text, provider="openai", model="gpt-4o-mini", **request)
        seen.append(got)
        if got.response["ok"] or not got.response["error"]["retryable"]:
            break
    return seen


@pytest.mark.requirement("providers.openai.live")
async def test_an_answer_streams(faults, start):
    faults.queue({"type": "reply", "text": "one two three"})
    async with start(faults.base_url) as stack:
        (got,) = await until_whole(stack, "count")
        models = (await stack.bus.call("router::models::list", {}))["models"]
    assert got.text == "one two three"
    assert got.kinds[0] == "start"
    assert got.kinds.count("text_delta") >= 2
    assert got.response["usage"]["output"] > 0
    assert {model["provider"] for model in models} == {"openai"}


@pytest.mark.requirement("providers.openai.live")
async def test_a_call_and_its_result_go_round(faults, start):
    arguments = {"function": "engine::functions::list", "payload": {"é": [1]}}
    faults.queue({"type": "reply", "tool_calls": [{"name": "agent_trigger", "arguments": arguments}]})
    async with start(faults.base_url) as stack:
        (got,) = await until_whole(stack, "look around", tools=[WRAPPER])
        assert got.calls[0]["arguments"] == arguments
        assert got.last["stop_reason"] == "function_call"
        content = [{"type": "text", "text": "[]"}]
        result = {"role": "function_result", "function_call_id": got.calls[0]["id"], "function_id": "agent_trigger"}
        user = {"role": "user", "content": [{"type": "text", "text": "look around"}], "timestamp": 1}
        messages = [user, got.last, {**result, "content": content, "timestamp": 1}]
        after = await stack.chat(messages, provider="openai", model="gpt-4o-mini", tools=[WRAPPER])
    assert after.last["stop_reason"] == "end"
    assert after.text
    assert faults.verdict["passed"]


@pytest.mark.requirement("router.relay.retry_after")
async def test_the_wait_of_a_429_is_kept(faults, start):
    faults.queue({"type": "fail", "status": 429, "retry_after": 1.5})
    async with start(faults.base_url) as stack:
        before = time.monotonic()
        (got,) = await until_whole(stack, "wait for it")
        assert time.monotonic() - before >= 1.5
    assert got.response["ok"]
    assert faults.verdict["passed"]
    assert faults.attempts == 2


@pytest.mark.requirement("router.relay.retry")
@pytest.mark.parametrize("status", [500, 503, 529])
async def test_a_server_error_is_tried_again(faults, start, status):
    faults.queue({"type": "fail", "status": status})
    async with start(faults.base_url) as stack:
        (got,) = await until_whole(stack, f"after {status}")
    assert got.response["ok"]
    assert faults.verdict["passed"]


@pytest.mark.requirement("providers.openai.live_errors")
@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        (400, "router/provider_rejected", "openai rejected the request (HTTP 400)"),
        (401, "router/provider_auth_expired", "openai authentication failed (HTTP 401); refresh credentials"),
        (403, "router/provider_auth_expired", "openai authentication failed (HTTP 403); refresh credentials"),
        (404, "router/provider_rejected", "openai rejected the request (HTTP 404)"),
    ],
)
async def test_an_error_that_no_retry_mends_is_told_at_once(faults, start, status, code, text):
    faults.queue({"type": "fail", "status": status, "message": "what the server says"})
    async with start(faults.base_url) as stack:
        (got,) = await until_whole(stack, f"refuse with {status}")
    assert (got.response["error"]["code"], got.response["error"]["message"]) == (code, text)
    assert faults.attempts == 1
    assert faults.verdict["passed"]


@pytest.mark.requirement("providers.openai.live_cut")
@pytest.mark.parametrize("after", [1, 3])
@pytest.mark.parametrize("fault", ["disconnect", "truncate", "malformed"])
async def test_a_broken_stream_is_never_taken_for_an_answer(faults, start, fault, after):
    text = "alpha beta gamma delta epsilon zeta eta theta"
    faults.queue(
        {"type": "reply", "text": text, "times": 4}, {"type": "stream_fault", "kind": fault, "after_chunks": after}
    )
    async with start(faults.base_url) as stack:
        seen = await until_whole(stack, f"{fault} {after}")
    assert seen[-1].text == text
    for broken in seen[:-1]:
        assert broken.response["error"]["kind"] == "transient"
        assert text.startswith(broken.text)
        streamed = "".join(frame.get("delta", "") for frame in broken.frames)
        assert broken.text == streamed
    assert faults.verdict["passed"], faults.verdict


@pytest.mark.requirement("providers.openai.live_stall")
async def test_a_server_that_falls_silent_ends_in_a_transient_error(faults, start):
    faults.queue({"type": "stream_fault", "kind": "stall", "after_chunks": 3, "stall_seconds": 20})
    async with start(faults.base_url, read_timeout_s=0.5) as stack:
        got = await stack.chat("stall", provider="openai", model="gpt-4o-mini")
    assert got.response["ok"] or got.last["error_kind"] == "transient"
    if not got.response["ok"]:
        assert got.last["error_message"] == "openai stream was silent for too long"


@pytest.mark.requirement("providers.openai.arguments")
async def test_malformed_arguments_keep_their_text(faults, start):
    faults.queue({"type": "tool_fault", "kind": "malformed_arguments"})
    async with start(faults.base_url) as stack:
        (got,) = await until_whole(stack, "malformed", tools=[WRAPPER])
    assert set(got.calls[0]["arguments"]) == {"_raw"}
    assert got.calls[0]["arguments"]["_raw"]


@pytest.mark.requirement("providers.openai.live_errors")
async def test_a_server_that_is_away_is_a_transient_failure(start, llmock_process):
    async with start("http://127.0.0.1:9/v1") as stack:
        got = await stack.chat("hello", provider="openai", model="m")
        row = next(
            row for row in (await stack.bus.call("router::provider::list", {}))["providers"] if row["id"] == "openai"
        )
    assert got.last["error_message"] == "openai request failed before a response; inspect provider logs"
    assert got.response["error"]["code"] == "router/provider_transient"
    assert row["diagnostic"]["catalog_state"] == "error"
    assert row["diagnostic"]["last_failure"]["kind"] == "transient"
