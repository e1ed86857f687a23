"""`iii-stack chat` as a process of its own, against model servers that others wrote (siblings 8, harness-loop 11.3).

What a person sees, what the exit code says, and what the transcript keeps: a streamed answer, a call with its result,
a server that asks to wait, one that fails, one whose stream is cut.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from iii_testing.model_servers import ModelServer, aimock_server, llama, llmock_process
from iii_testing.processes import COMMAND, StackProcess, cli

__all__ = ["llama", "llmock_process"]


NUDGE = "its stream broke"
ADDER = Path(__file__).with_name("adder.py")
ADD = {"function": "demo::add", "payload": {"a": 20, "b": 22}}
LIST_WORKERS = {"function": "engine::workers::list", "payload": {}}
LONG = "one two three four five six seven eight nine ten eleven twelve"


def said(user: str, response: dict[str, Any], **more: Any) -> dict[str, Any]:
    match = {"userMessage": user, **more.pop("match", {})}
    return {"match": match, "response": response, **more}


def wrapped(call: str, arguments: Any = LIST_WORKERS) -> dict[str, Any]:
    return {"id": call, "name": "agent_trigger", "arguments": arguments}


SCRIPT = [
    said(NUDGE, {"content": "And this is all of it."}),
    said("stream", {"content": LONG}, chunkSize=5, latency=60),
    said("look", {"content": "I look.", "toolCalls": [wrapped("call_a")]}, match={"hasToolResult": False}),
    said("look", {"content": "I have looked."}, match={"hasToolResult": True}),
    said("break", {"content": LONG}, chunkSize=5, latency=5, truncateAfterChunks=6),
]
"""What aimock answers; a message that matches nothing is refused with 503."""
SIGNED = {"reasoning": "I had better look.", "reasoningSignature": "sig-of-aimock", "redactedThinking": ["b3BhcXVl"]}
THINKING = [
    said(
        "look",
        {**SIGNED, "content": "I look.", "toolCalls": [wrapped("toolu_a")]},
        match={"hasToolResult": False},
    ),
    said("look", {"content": "I have looked."}, match={"hasToolResult": True}),
]
"""What aimock answers as Anthropic: a continuation without the signed thinking is refused."""


@dataclass
class ChatBench:
    """A stack that is configured with one model server."""

    stack: StackProcess
    server: ModelServer
    model: str

    def chat(self, message: str, seconds: float = 60) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        """Say one thing in a new session: what the process printed, and what `show` tells of the session."""
        done = cli("chat", "--model", self.model, message, env=self.stack.env, seconds=seconds)
        return done, self.stack.json("show", self.stack.json("sessions", "--limit", "1")["sessions"][0]["session_id"])


def serving(server: ModelServer, directory: Any, model: str) -> Iterator[ChatBench]:
    provider = model.partition("/")[0].upper()
    environ = {f"{provider}_BASE_URL": server.base_url, f"{provider}_API_KEY": "sk-for-tests-only"}
    stack = StackProcess(directory / "data", **environ)
    try:
        yield ChatBench(stack, server, model)
    finally:
        stack.end()


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatBench]:
    directory = tmp_path_factory.mktemp("aimock")
    with aimock_server(directory, SCRIPT) as server:
        yield from serving(server, directory, "openai/gpt-5.2")


@pytest.fixture(scope="module")
def claude(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatBench]:
    directory = tmp_path_factory.mktemp("claude")
    with aimock_server(directory, THINKING) as server:
        yield from serving(server, directory, "anthropic/claude-sonnet-4-5")


@pytest.fixture(scope="module")
def faulty_stack(llmock_process: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatBench]:
    yield from serving(llmock_process, tmp_path_factory.mktemp("llmock"), "openai/gpt-4o-mini")


@pytest.fixture
def faulty(faulty_stack: ChatBench) -> ChatBench:
    faulty_stack.server.ask("/_llmock/reset", {})
    return faulty_stack


def messages(shown: dict[str, Any], role: str) -> list[dict[str, Any]]:
    return [entry["message"] for entry in shown["entries"] if entry.get("message", {}).get("role") == role]


def text(message: dict[str, Any]) -> str:
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")


def custom(shown: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [entry["custom"]["data"] for entry in shown["entries"] if entry.get("custom", {}).get("custom_type") == kind]


@pytest.mark.requirement("stack.chat.models.streams")
def test_the_answer_of_a_server_appears_while_it_is_written(scripted: ChatBench) -> None:
    chat = subprocess.Popen(
        [COMMAND, "chat", "--model", scripted.model, f"stream {uuid.uuid4().hex}"],
        env=scripted.stack.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert chat.stdout is not None
    pieces: list[str] = []
    while piece := chat.stdout.read1():  # type: ignore[attr-defined]
        pieces.append(piece.decode())
    chat.communicate(timeout=30)
    assert chat.returncode == 0
    assert "".join(pieces) == LONG + "\n"
    assert len(pieces) > 2


@pytest.mark.requirement("stack.chat.models.call")
def test_a_call_of_the_model_runs_and_its_result_is_shown(scripted: ChatBench) -> None:
    done, shown = scripted.chat("look around")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "I look.\nI have looked.\n"
    told = done.stderr.splitlines()
    call = told.index("→ engine::workers::list {}")
    assert told[call + 1].startswith("✓ ")
    assert "workers" in told[call + 1]
    (result,) = messages(shown, "function_result")
    assert result["function_id"] == "engine::workers::list"
    assert result["is_error"] is False
    sent = scripted.server.ask("/__aimock/journal")[-1]["body"]["messages"]
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == ["call_a"]


@pytest.mark.requirement("stack.chat.models.thinking")
def test_signed_thinking_is_kept_in_the_transcript_and_goes_back_with_the_result(claude: ChatBench) -> None:
    done, shown = claude.chat("look around")
    assert done.returncode == 0, done.stderr
    assert "I look.\n" in done.stdout
    assert done.stdout.endswith("I have looked.\n")
    asked, answered = messages(shown, "assistant")
    assert (asked["provider"], answered["provider"]) == ("anthropic", "anthropic")
    thinking = next(block for block in asked["content"] if block["type"] == "thinking")
    assert (thinking["text"], thinking["signature"]) == ("I had better look.", "sig-of-aimock")
    assert any(block["type"] == "redacted_thinking" for block in asked["content"])
    (result,) = messages(shown, "function_result")
    assert (result["function_id"], result["is_error"]) == ("engine::workers::list", False)
    assert claude.server.ask("/__aimock/journal")[-1]["path"].endswith("/v1/messages")


@pytest.mark.requirement("stack.chat.models.cut")
def test_a_stream_that_is_cut_is_taken_up_again_and_keeps_what_came(scripted: ChatBench) -> None:
    done, shown = scripted.chat("break")
    assert done.returncode == 0, done.stderr
    partial, whole = [text(message) for message in messages(shown, "assistant")]
    assert partial
    assert LONG.startswith(partial)
    assert partial != LONG
    assert whole == "And this is all of it."
    assert done.stdout == f"{partial}\n{whole}\n"
    assert [entry["status"] for entry in custom(shown, "recovery")] == ["recovering", "recovered"]


@pytest.mark.requirement("stack.chat.models.refused")
def test_a_server_that_refuses_fails_the_chat_with_the_reason(scripted: ChatBench) -> None:
    done, shown = scripted.chat("nothing is written for this")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "turn failed" in done.stderr
    assert custom(shown, "error")
    assert shown["session"]["status"] == "error"


def queue(bench: ChatBench, *behaviors: dict[str, Any]) -> None:
    of_streams = [{"match": {"stream": True}, **behavior} for behavior in behaviors]
    bench.server.ask("/_llmock/scenario", {"behaviors": of_streams})


@pytest.fixture
def judged(faulty: ChatBench) -> Callable[[], None]:
    """Asks the server what it thinks of its client."""

    def judge() -> None:
        verdict = faulty.server.ask("/_llmock/verdict")
        assert verdict["passed"], json.dumps(verdict)

    return judge


@pytest.mark.requirement("stack.chat.models.waits")
def test_a_server_that_asks_to_wait_gets_its_time_and_the_chat_its_answer(
    faulty: ChatBench, judged: Callable[[], None]
) -> None:
    queue(faulty, {"type": "fail", "status": 429, "retry_after": 2}, {"type": "reply", "text": "after the wait"})
    before = time.monotonic()
    done, shown = faulty.chat("wait for it")
    assert time.monotonic() - before >= 2
    assert (done.returncode, done.stdout) == (0, "after the wait\n"), done.stderr
    assert [text(message) for message in messages(shown, "assistant")] == ["after the wait"]
    judged()


@pytest.mark.requirement("stack.chat.models.server-error")
@pytest.mark.parametrize("status", [pytest.param(500, marks=pytest.mark.slow), 503])
def test_a_server_error_is_tried_again_unseen(faulty: ChatBench, judged: Callable[[], None], status: int) -> None:
    queue(faulty, {"type": "fail", "status": status}, {"type": "reply", "text": "now it works"})
    done, shown = faulty.chat(f"after {status}")
    assert (done.returncode, done.stdout) == (0, "now it works\n"), done.stderr
    assert custom(shown, "recovery") == []
    judged()


REST = ("truncate", "malformed")


@pytest.mark.requirement("stack.chat.models.cut")
@pytest.mark.parametrize("fault", ["disconnect", *(pytest.param(it, marks=pytest.mark.slow) for it in REST)])
def test_a_stream_that_breaks_once_recovers(faulty: ChatBench, judged: Callable[[], None], fault: str) -> None:
    queue(
        faulty,
        {"type": "reply", "text": LONG, "times": 2},
        {"type": "stream_fault", "kind": fault, "after_chunks": 4},
    )
    done, shown = faulty.chat(f"broken by {fault}")
    assert done.returncode == 0, done.stderr
    partial, whole = [text(message) for message in messages(shown, "assistant")]
    assert partial
    assert LONG.startswith(partial)
    assert whole == LONG
    assert done.stdout == f"{partial}\n{whole}\n"
    if fault != "truncate":  # the server knows a retry by its equal body; this one shows the model what came
        judged()


@pytest.mark.requirement("stack.chat.models.cut")
def test_a_stream_that_breaks_again_and_again_fails_and_keeps_what_came(faulty: ChatBench) -> None:
    queue(
        faulty,
        {"type": "reply", "text": LONG, "times": 9},
        {"type": "stream_fault", "kind": "disconnect", "after_chunks": 4, "times": 9},
    )
    done, shown = faulty.chat("broken for good")
    assert done.returncode == 1
    assert "[recovery] recovering · The provider had a temporary failure. · openai stream ended" in done.stderr
    assert "\n[error] The provider had a temporary failure. · openai stream ended" in done.stderr
    assert "\nturn failed\n" in done.stderr
    kept = [text(message) for message in messages(shown, "assistant")]
    assert len(kept) == 2
    assert all(part and LONG.startswith(part) for part in kept)
    (error,) = custom(shown, "error")
    assert error["retryable"] is True
    assert error["recovery"] == {"attempted": 1, "max_attempts": 1, "outcome": "exhausted"}
    assert json.dumps(error).count("sk-for-tests-only") == 0


@pytest.fixture(scope="module")
def real(llama: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatBench]:
    yield from serving(llama, tmp_path_factory.mktemp("llama"), "openai/smollm2")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("stack.chat.models.real")
def test_a_real_model_answers_and_calls_a_function_of_another_process(real: ChatBench) -> None:
    done, shown = real.chat("((say Grüße from a small model))", seconds=240)
    assert (done.returncode, done.stdout) == (0, "Grüße from a small model\n"), done.stderr
    assert [text(message) for message in messages(shown, "assistant")] == ["Grüße from a small model"]
    with subprocess.Popen([sys.executable, str(ADDER), real.stack.url], stdout=subprocess.PIPE, text=True) as adder:
        assert adder.stdout is not None
        assert adder.stdout.readline() == "registered\n"
        done, shown = real.chat(f"((call agent_trigger {json.dumps(ADD)}))", seconds=240)
        adder.terminate()
        assert adder.stdout.read() == "called\n"
    assert done.returncode == 0, done.stderr
    told = done.stderr.splitlines()
    assert told[told.index('→ demo::add {"a": 20, "b": 22}') + 1] == '✓ {"sum":42}'
    asked, answered = messages(shown, "assistant")
    assert asked["usage"]["output"] > 0
    assert "42" in text(answered)
    assert text(answered) in done.stdout
    totals = real.stack.call("harness::metrics", {"session_id": shown["session"]["session_id"]})["totals"]
    assert (totals["turns"], totals["function_calls"], totals["function_call_errors"]) == (2, 1, 0)
