"""Streams of the Messages API: recorded bytes in, frames out, cut at every byte (siblings 7; engineering, 5)."""

from __future__ import annotations

import json

import pytest

from iii_kit.stream_frames import FrameReader
from iii_siblings.providers.anthropic.messages_stream import MessagesStream
from iii_siblings.providers.function_names import FunctionNames
from iii_testing.answer_streams import Collected, events, played

pytestmark = pytest.mark.anyio


def began(index: int, kind: str, **fields) -> dict:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def more(index: int, kind: str, **fields) -> dict:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stopped(index: int) -> dict:
    return {"type": "content_block_stop", "index": index}


def opened(**usage: int) -> dict:
    return {"type": "message_start", "message": {"id": "msg_1", "content": [], "usage": usage}}


def closing(reason: str | None, **usage: int) -> tuple[dict, dict]:
    delta = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    return delta, {"type": "message_stop"}


BYTES = events(
    opened(input_tokens=40, output_tokens=1, cache_read_input_tokens=60, cache_creation_input_tokens=5),
    began(0, "thinking", thinking="", signature=""),
    {"type": "ping"},
    more(0, "thinking_delta", thinking="I think "),
    more(0, "thinking_delta", thinking="so."),
    more(0, "signature_delta", signature="c2ln"),
    more(0, "signature_delta", signature="bmVk"),
    stopped(0),
    began(1, "redacted_thinking", data="b3BhcXVl"),
    stopped(1),
    began(2, "text", text=""),
    more(2, "text_delta", text="Grüße, "),
    more(2, "text_delta", text="world"),
    stopped(2),
    began(3, "tool_use", id="toolu_a", name="agent__run", input={}),
    more(3, "input_json_delta", partial_json=""),
    more(3, "input_json_delta", partial_json='{"city": "Zü'),
    more(3, "input_json_delta", partial_json='rich", "deep": {"a": [1]}}'),
    stopped(3),
    began(4, "tool_use", id="toolu_b", name="agent__run", input={}),
    more(4, "input_json_delta", partial_json='{"n": 2}'),
    stopped(4),
    *closing("tool_use", output_tokens=27),
)
ANSWER = [
    {"type": "thinking", "text": "I think so.", "signature": "c2lnbmVk"},
    {"type": "redacted_thinking", "data": "b3BhcXVl"},
    {"type": "text", "text": "Grüße, world"},
    {
        "type": "function_call",
        "id": "toolu_a",
        "function_id": "agent::run",
        "arguments": {"city": "Zürich", "deep": {"a": [1]}},
    },
    {"type": "function_call", "id": "toolu_b", "function_id": "agent::run", "arguments": {"n": 2}},
]
COUNTS = {"input": 40, "output": 27, "cache_read": 60, "cache_write": 5}


async def play(world, *chunks: bytes) -> Collected:
    names = FunctionNames(["agent::run"])
    sink, _ = await played("anthropic", lambda emitter: MessagesStream(emitter, names, world.ids), *chunks)
    return sink


@pytest.mark.requirement("providers.anthropic.stream")
async def test_a_whole_answer(world):
    sink = await play(world, BYTES)
    kinds = [frame["type"] for frame in sink.frames]
    assert sink.last["content"] == ANSWER
    assert (sink.last["stop_reason"], sink.last["native_stop_reason"]) == ("function_call", "tool_use")
    assert sink.frames[-2:][0] == {"type": "stop", "stop_reason": "function_call"}
    assert kinds[:2] == ["start", "usage"]
    assert kinds.count("start") == kinds.count("done") == kinds.count("ping") == 1
    ended = sink.frames[kinds.index("thinking_end")]
    assert ended["partial"]["content"][-1] == ANSWER[0]
    assert kinds.index("thinking_end") < kinds.index("text_start") < kinds.index("functioncall_start")


@pytest.mark.requirement("providers.anthropic.usage")
async def test_the_counts_of_the_end_replace_those_of_the_beginning(world):
    sink = await play(world, BYTES)
    assert sink.last["usage"] == COUNTS
    assert [frame["usage"] for frame in sink.frames if frame["type"] == "usage"] == [{**COUNTS, "output": 1}, COUNTS]
    cumulative = {"input_tokens": 40, "output_tokens": 27, "cache_read_input_tokens": 60}
    sink = await play(world, events(opened(input_tokens=40, output_tokens=1), *closing("end_turn", **cumulative)))
    assert sink.last["usage"] == {"input": 40, "output": 27, "cache_read": 60}


@pytest.mark.requirement("providers.anthropic.usage")
async def test_odd_counts_are_left_out(world):
    sink = await play(world, events(opened(input_tokens=-4, output_tokens=2), *closing("end_turn", output_tokens=-1)))
    assert sink.last["usage"] == {"output": 2}


@pytest.mark.requirement("providers.anthropic.stream")
async def test_a_reader_follows_the_frames_to_the_same_answer(world):
    sink = await play(world, BYTES)
    reader = FrameReader()
    for frame in sink.items[:-1]:
        reader.feed(frame)
    assert reader.partial()["content"] == ANSWER
    assert (sink.streamed(), sink.streamed("thinking")) == ("Grüße, world", "I think so.")


@pytest.mark.requirement("providers.anthropic.cut")
async def test_an_answer_cut_at_any_byte_is_never_taken_for_a_whole_one(world):
    calls = {block["id"]: block["arguments"] for block in ANSWER if block["type"] == "function_call"}
    for at in range(len(BYTES)):
        sink = await play(world, BYTES[:at])
        if sink.frames[-1]["type"] == "done":
            assert sink.last["content"] == ANSWER
            assert at > BYTES.index(b"message_stop")
            continue
        error = sink.last
        assert (error["error_kind"], error["stop_reason"]) == ("transient", "error")
        assert sum(frame["type"] in ("done", "error") for frame in sink.frames) == 1
        assert "".join(block["text"] for block in error["content"] if block["type"] == "text") == sink.streamed()
        for block in error["content"]:
            if block["type"] == "thinking":
                assert block.get("signature") in (None, "c2lnbmVk")
            if block["type"] == "function_call":
                assert block["arguments"] == calls[block["id"]] or {"_partial", "_raw"} & set(block["arguments"])


@pytest.mark.requirement("providers.anthropic.cut")
async def test_the_text_of_a_cut_says_what_was_missing(world):
    sink = await play(world, BYTES[: BYTES.index(b'data: {"type": "message_stop"')])
    assert sink.last["error_message"] == "anthropic stream ended before message_stop"


@pytest.mark.requirement("providers.anthropic.cut")
async def test_chunks_of_any_size_give_the_same_answer(world):
    for size in (1, 2, 3, 7, 50, 1000):
        sink = await play(world, *(BYTES[at : at + size] for at in range(0, len(BYTES), size)))
        assert sink.last["content"] == ANSWER


@pytest.mark.requirement("providers.anthropic.stream")
async def test_names_of_events_and_carriage_returns_change_nothing(world):
    named = b"".join(b"event: x\r\n" + line + b"\r\n\r\n" for line in BYTES.split(b"\n\n") if line)
    assert (await play(world, named)).last["content"] == ANSWER


@pytest.mark.requirement("providers.anthropic.arguments")
@pytest.mark.parametrize(
    ("text", "reason", "arguments"),
    [
        ("", "tool_use", {}),
        ('{"a": 1', "tool_use", {"_raw": '{"a": 1'}),
        ('{"a": 1, "b', "max_tokens", {"a": 1, "_partial": True}),
        ('{"a"', "max_tokens", {"_raw": '{"a"'}),
        ("", "max_tokens", {"_raw": ""}),
        ('{"a": "\\ud800"}', "tool_use", {"a": "�"}),
    ],
)
@pytest.mark.parametrize("ends", [[stopped(0)], []], ids=["ended", "open"])
async def test_malformed_arguments_keep_their_text(world, text, reason, arguments, ends):
    call = [began(0, "tool_use", id="x", name="agent__run", input={}), more(0, "input_json_delta", partial_json=text)]
    sink = await play(world, events(opened(), *call, *ends, *closing(reason)))
    assert sink.last["content"][0]["arguments"] == arguments
    assert sink.last["stop_reason"] == ("length" if reason == "max_tokens" else "function_call")


@pytest.mark.requirement("providers.anthropic.arguments")
async def test_a_whole_call_before_the_ceiling_stays_whole(world):
    call = [began(0, "tool_use", id="x", name="f", input={}), more(0, "input_json_delta", partial_json='{"a": 1}')]
    text = [began(1, "text", text=""), more(1, "text_delta", text="and the"), stopped(1)]
    sink = await play(world, events(opened(), *call, stopped(0), *text, *closing("max_tokens")))
    assert sink.last["content"][0]["arguments"] == {"a": 1}


@pytest.mark.requirement("providers.anthropic.stops")
@pytest.mark.parametrize(
    ("native", "expected"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "length"),
        ("tool_use", "end"),
        ("pause_turn", "end"),
        ("refusal", "end"),
        ("model_context_window_exceeded", "end"),
        (None, "end"),
    ],
)
async def test_stop_reasons(world, native, expected):
    text = [began(0, "text", text="Hi"), stopped(0)]
    sink = await play(world, events(opened(), *text, *closing(native)))
    assert (sink.last["stop_reason"], sink.last.get("native_stop_reason")) == (expected, native)
    assert sink.last["content"] == [{"type": "text", "text": "Hi"}]


@pytest.mark.requirement("providers.anthropic.quirks")
async def test_blocks_that_overlap(world):
    data = events(
        opened(),
        began(0, "thinking"),
        more(0, "thinking_delta", thinking="hm"),
        more(0, "signature_delta", signature="s"),
        began(1, "text"),
        stopped(0),
        more(1, "text_delta", text="so"),
        began(2, "tool_use", id="x", name="f"),
        more(2, "input_json_delta", partial_json='{"a":'),
        began(3, "tool_use", id="x", name="g"),
        stopped(1),
        more(3, "input_json_delta", partial_json='{"b":2}'),
        more(2, "input_json_delta", partial_json="1}"),
        stopped(3),
        stopped(2),
        *closing("end_turn"),
    )
    sink = await play(world, data)
    thinking, text, *calls = sink.last["content"]
    assert thinking == {"type": "thinking", "text": "hm", "signature": "s"}
    assert text == {"type": "text", "text": "so"}
    assert [call["arguments"] for call in calls] == [{"a": 1}, {"b": 2}]
    assert len({call["id"] for call in calls}) == 2
    assert sink.last["stop_reason"] == "function_call"


@pytest.mark.requirement("providers.anthropic.quirks")
async def test_a_signature_without_text_keeps_its_block(world):
    data = events(opened(), began(0, "thinking"), more(0, "signature_delta", signature="s"), stopped(0))
    sink = await play(world, data + events(began(1, "text", text="a"), stopped(1), *closing("end_turn")))
    assert sink.last["content"][0] == {"type": "thinking", "text": "", "signature": "s"}


@pytest.mark.requirement("providers.anthropic.quirks")
async def test_blocks_in_one_piece_and_blocks_of_servers(world):
    data = events(
        opened(),
        began(0, "text", text="one"),
        stopped(0),
        began(1, "text", text="two"),
        stopped(1),
        began(2, "server_tool_use", id="s", name="web_search", input={}),
        more(2, "input_json_delta", partial_json='{"q":1}'),
        stopped(2),
        began(3, "tool_use", id="x", name="f", input={"a": 1}),
        stopped(3),
        *closing("tool_use"),
    )
    sink = await play(world, data)
    assert [block.get("text") for block in sink.last["content"]] == ["one", "two", None]
    assert sink.last["content"][2]["arguments"] == {"a": 1}


@pytest.mark.requirement("providers.anthropic.stream_errors")
@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "secret"}}, "transient"),
        ({"type": "error", "error": {"type": "api_error"}}, "transient"),
        ({"type": "error", "error": {"type": "rate_limit_error"}}, "rate_limited"),
        ({"type": "error", "error": {"type": "authentication_error"}}, "auth_expired"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "secret"}}, "permanent"),
        (
            {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9"}},
            "context_overflow",
        ),
        ({"error": "secret"}, "transient"),
        ({"type": "error"}, "transient"),
        ("{not json", "transient"),
    ],
)
async def test_errors_inside_a_stream(world, event, kind):
    sink = await play(world, events(opened(), began(0, "text", text="so far"), event))
    assert sink.last["error_kind"] == kind
    assert sink.last["content"] == [{"type": "text", "text": "so far"}]
    assert "secret" not in json.dumps(sink.last)


@pytest.mark.requirement("providers.anthropic.stream")
@pytest.mark.parametrize(
    "chunk",
    [
        "null",
        "[]",
        '{"type": "content_block_start"}',
        '{"type": "content_block_delta", "index": "x", "delta": 5}',
        '{"type": "content_block_delta", "index": 9, "delta": {"type": "input_json_delta", "partial_json": "{"}}',
        '{"type": "content_block_stop", "index": 9}',
        '{"type": "message_start", "message": null}',
        '{"type": "something_new"}',
    ],
)
async def test_odd_events_break_nothing(world, chunk):
    text = [began(0, "text", text="x"), stopped(0)]
    sink = await play(world, events(opened(), chunk, *text, *closing("end_turn")))
    assert sink.last["content"] == [{"type": "text", "text": "x"}]
