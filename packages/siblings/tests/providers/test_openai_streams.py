"""Streams of both APIs: recorded bytes in, frames out, cut at every byte (siblings 8; engineering, "Cut streams")."""

from __future__ import annotations

import json

import pytest

from iii_kit.stream_frames import FrameReader
from iii_siblings.providers.emitter import Emitter
from iii_siblings.providers.function_names import FunctionNames
from iii_siblings.providers.openai.chat_stream import ChatStream
from iii_siblings.providers.openai.responses_stream import ResponsesStream
from iii_testing.answer_streams import Collected, events, played

pytestmark = pytest.mark.anyio


chat = events


def delta(finish: str | None = None, **fields) -> dict:
    return {"id": "c", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call(index: int, text: str, **fields) -> dict:
    return {"index": index, "function": {"arguments": text, **fields.pop("function", {})}, **fields}


USAGE = {
    "choices": [],
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 3},
    },
}
COUNTS = {"input": 40, "output": 7, "cache_read": 60, "reasoning": 3}
CHAT = chat(
    delta(role="assistant", content=None),
    delta(reasoning_content="I think "),
    delta(reasoning_content="so."),
    delta(content="Grüße, "),
    delta(content="world"),
    delta(tool_calls=[call(0, "", id="call_a", function={"name": "agent__run"})]),
    delta(tool_calls=[call(0, '{"city": "Zü')]),
    delta(tool_calls=[call(1, '{"n":', id="call_b", function={"name": "agent__run"})]),
    delta(tool_calls=[call(0, 'rich", "deep": {"a": [1]}}')]),
    delta(tool_calls=[call(1, " 2}")]),
    delta(finish="tool_calls"),
    USAGE,
    "[DONE]",
)


def event(kind: str, **fields) -> dict:
    return {"type": kind, **fields}


def item(kind: str, key: str, **fields) -> dict:
    return {"type": kind, "id": key, **fields}


COMPLETED = {
    "status": "completed",
    "usage": {
        "input_tokens": 100,
        "output_tokens": 7,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens_details": {"reasoning_tokens": 3},
    },
}
RESPONSES = chat(
    event("response.created", response={"status": "in_progress"}),
    event("response.output_item.added", item=item("reasoning", "r1"), output_index=0),
    event("response.reasoning_summary_text.delta", item_id="r1", delta="I think "),
    event("response.reasoning_text.delta", item_id="r1", delta="so."),
    event("response.output_item.done", item=item("reasoning", "r1"), output_index=0),
    event("response.output_item.added", item=item("message", "m1"), output_index=1),
    event("response.output_text.delta", item_id="m1", delta="Grüße, "),
    event("response.output_text.delta", item_id="m1", delta="world"),
    event("response.output_item.done", item=item("message", "m1", content=[{"text": "Grüße, world"}]), output_index=1),
    event("response.output_item.added", item=item("function_call", "f1", call_id="call_a", name="agent__run")),
    event("response.output_item.added", item=item("function_call", "f2", call_id="call_b", name="agent__run")),
    event("response.function_call_arguments.delta", item_id="f1", delta='{"city": "Zü'),
    event("response.function_call_arguments.delta", item_id="f2", delta='{"n":'),
    event("response.function_call_arguments.delta", item_id="f1", delta='rich", "deep": {"a": [1]}}'),
    event("response.function_call_arguments.delta", item_id="f2", delta=" 2}"),
    event(
        "response.output_item.done",
        item=item("function_call", "f1", arguments='{"city": "Zürich", "deep": {"a": [1]}}'),
    ),
    event("response.output_item.done", item=item("function_call", "f2", call_id="call_b", arguments='{"n": 2}')),
    event("response.completed", response=COMPLETED),
)
ANSWER = [
    {"type": "thinking", "text": "I think so."},
    {"type": "text", "text": "Grüße, world"},
    {
        "type": "function_call",
        "id": "call_a",
        "function_id": "agent::run",
        "arguments": {"city": "Zürich", "deep": {"a": [1]}},
    },
    {"type": "function_call", "id": "call_b", "function_id": "agent::run", "arguments": {"n": 2}},
]
APIS = [(ChatStream, CHAT), (ResponsesStream, RESPONSES)]


async def play(kind, world, *chunks: bytes) -> tuple[Collected, Emitter]:
    """What the provider sends for the bytes of an answer."""
    names = FunctionNames(["agent::run"])
    return await played("openai", lambda emitter: kind(emitter, names, world.ids), *chunks)


@pytest.mark.requirement("providers.openai.stream")
@pytest.mark.parametrize(("kind", "data"), APIS)
async def test_a_whole_answer(world, kind, data):
    sink, emitter = await play(kind, world, data)
    final = sink.frames[-1]
    assert final["type"] == "done"
    assert final["message"]["content"] == ANSWER
    assert final["message"]["stop_reason"] == "function_call"
    assert final["message"]["usage"] == COUNTS
    assert sink.frames[-2] == {"type": "stop", "stop_reason": "function_call"}
    assert emitter.ended
    kinds = [frame["type"] for frame in sink.frames]
    assert kinds.count("start") == kinds.count("done") == 1
    assert kinds.index("thinking_end") < kinds.index("text_start")


@pytest.mark.requirement("providers.openai.stream")
@pytest.mark.parametrize(("kind", "data"), APIS)
async def test_a_reader_follows_the_frames_to_the_same_answer(world, kind, data):
    sink, _ = await play(kind, world, data)
    reader = FrameReader()
    for frame in sink.items[:-1]:
        reader.feed(frame)
    assert reader.partial()["content"] == ANSWER
    assert "".join(f["delta"] for f in sink.frames if f["type"] == "text_delta") == "Grüße, world"


@pytest.mark.requirement("providers.openai.cut")
@pytest.mark.parametrize(("kind", "data"), APIS)
async def test_an_answer_cut_at_any_byte_is_never_taken_for_a_whole_one(world, kind, data):
    full = {block["type"] + block.get("id", ""): block for block in ANSWER}
    for at in range(len(data)):
        sink, _ = await play(kind, world, data[:at])
        final = sink.frames[-1]
        streamed = "".join(frame["delta"] for frame in sink.frames if frame["type"] == "text_delta")
        if final["type"] == "done":
            assert final["message"]["content"] == ANSWER
            assert at > data.index(b"finish_reason" if kind is ChatStream else b"response.completed")
            continue
        error = final["error"]
        assert (final["type"], error["error_kind"], error["stop_reason"]) == ("error", "transient", "error")
        assert sum(frame["type"] in ("done", "error") for frame in sink.frames) == 1
        assert "".join(block["text"] for block in error["content"] if block["type"] == "text") == streamed
        for block in error["content"]:
            if block["type"] == "function_call":
                assert block["arguments"] != {}
                whole = full["function_call" + block["id"]]["arguments"]
                assert block["arguments"] == whole or {"_partial", "_raw"} & set(block["arguments"])


@pytest.mark.requirement("providers.openai.cut")
@pytest.mark.parametrize(("kind", "data"), APIS)
async def test_chunks_of_any_size_give_the_same_answer(world, kind, data):
    for size in (1, 2, 3, 7, 50, 1000):
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        sink, _ = await play(kind, world, *chunks)
        assert sink.frames[-1]["message"]["content"] == ANSWER


@pytest.mark.requirement("providers.openai.arguments")
@pytest.mark.parametrize(
    ("text", "finish", "arguments"),
    [
        ("", "tool_calls", {}),
        ("  ", "tool_calls", {}),
        ('{"a": 1', "tool_calls", {"_raw": '{"a": 1'}),
        ('{"a": 1, "b', "length", {"a": 1, "_partial": True}),
        ('{"a"', "length", {"_raw": '{"a"'}),
        ("", "length", {"_raw": ""}),
        ('"text"', "tool_calls", "text"),
        ('{"a": NaN}', "tool_calls", {"_raw": '{"a": NaN}'}),
        ('{"a": "\\ud800"}', "stop", {"a": "�"}),
    ],
)
async def test_malformed_arguments_keep_their_text(world, text, finish, arguments):
    begun = delta(tool_calls=[call(0, text, id="x", function={"name": "agent__run"})])
    sink, _ = await play(ChatStream, world, chat(begun, delta(finish=finish), "[DONE]"))
    message = sink.frames[-1]["message"]
    assert message["content"][0]["arguments"] == arguments
    assert message["stop_reason"] == ("length" if finish == "length" else "function_call")
    assert message["native_stop_reason"] == finish


@pytest.mark.requirement("providers.openai.quirks")
async def test_servers_that_differ(world):
    same_index = chat(
        delta(tool_calls=[call(0, '{"a":1}', id="x", function={"name": "f"})]),
        delta(tool_calls=[call(0, '{"b":2}', id="y", function={"name": "g"})]),
        delta(tool_calls=[{"function": {"name": "h", "arguments": {"c": 3}}, "index": 1}]),
        delta(tool_calls=[call(2, "{}", id="x", function={"name": "twice"})]),
        delta(finish="stop"),
    )
    sink, _ = await play(ChatStream, world, same_index)
    calls = sink.frames[-1]["message"]["content"]
    assert [block["arguments"] for block in calls] == [{"a": 1}, {"b": 2}, {"c": 3}, {}]
    assert [block["function_id"] for block in calls] == ["f", "g", "h", "twice"]
    assert len({block["id"] for block in calls}) == 4
    assert all(block["id"] for block in calls)
    assert sink.frames[-1]["message"]["stop_reason"] == "function_call"


@pytest.mark.requirement("providers.openai.quirks")
async def test_responses_without_deltas_or_item_ids(world):
    data = chat(
        event("response.output_item.done", item={"type": "message", "content": [{"text": "whole"}]}, output_index=0),
        event(
            "response.output_item.added", item={"type": "function_call", "call_id": "c", "name": "f"}, output_index=1
        ),
        event("response.function_call_arguments.delta", delta='{"a":1}', output_index=1),
        event("response.output_item.done", item={"type": "function_call", "call_id": "d", "name": "g"}, output_index=2),
        event("response.completed", response={"status": "completed"}),
    )
    sink, _ = await play(ResponsesStream, world, data)
    content = sink.frames[-1]["message"]["content"]
    assert content[0] == {"type": "text", "text": "whole"}
    assert [block["arguments"] for block in content[1:]] == [{"a": 1}, {}]


@pytest.mark.requirement("providers.openai.stream")
async def test_an_answer_that_ran_into_its_ceiling(world):
    response = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    data = chat(
        event("response.output_item.added", item=item("function_call", "f", call_id="c", name="f")),
        event("response.function_call_arguments.delta", item_id="f", delta='{"a": 1, "b"'),
        event("response.incomplete", response=response),
    )
    sink, _ = await play(ResponsesStream, world, data)
    message = sink.frames[-1]["message"]
    assert (message["stop_reason"], message["native_stop_reason"]) == ("length", "max_output_tokens")
    assert message["content"][0]["arguments"] == {"a": 1, "_partial": True}


@pytest.mark.requirement("providers.openai.stream_errors")
@pytest.mark.parametrize(
    ("kind", "chunk", "expected"),
    [
        (ChatStream, {"error": {"code": "server_error", "message": "secret"}}, "transient"),
        (ChatStream, {"error": {"code": "context_length_exceeded"}}, "context_overflow"),
        (ChatStream, {"error": {"code": "rate_limit_exceeded"}}, "rate_limited"),
        (ChatStream, {"error": "secret"}, "transient"),
        (ChatStream, "{not json", "transient"),
        (ResponsesStream, event("error", code="insufficient_quota", message="secret"), "permanent"),
        (ResponsesStream, event("response.failed", response={"error": {"code": "server_error"}}), "transient"),
        (ResponsesStream, event("error", error={"type": "exceed_context_size_error"}), "context_overflow"),
        (ResponsesStream, "{not json", "transient"),
    ],
)
async def test_errors_inside_a_stream(world, kind, chunk, expected):
    begun = delta(content="so far") if kind is ChatStream else event("response.output_text.delta", delta="so far")
    sink, _ = await play(kind, world, chat(begun, chunk))
    error = sink.frames[-1]["error"]
    assert error["error_kind"] == expected
    assert error["content"] == [{"type": "text", "text": "so far"}]
    assert "secret" not in json.dumps(error)


@pytest.mark.requirement("providers.openai.stream")
@pytest.mark.parametrize(
    "chunk", ["null", "[]", "5", '{"choices": null}', '{"choices": [{"delta": {"tool_calls": [5]}}]}']
)
async def test_odd_chunks_break_nothing(world, chunk):
    sink, _ = await play(ChatStream, world, chat(chunk, delta(content="x"), delta(finish="stop")))
    assert sink.frames[-1]["type"] == "done"
