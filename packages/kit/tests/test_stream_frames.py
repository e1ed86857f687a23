"""Frames of a generation: shallow decoding and the one accumulation of all readers (siblings 5.5)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_kit.stream_frames import FrameReader, shown_arguments


def message(*content: dict) -> dict:
    return {"role": "assistant", "content": list(content), "stop_reason": "end", "model": "m", "provider": "p"}


def read(*frames: dict | str) -> FrameReader:
    reader = FrameReader()
    for frame in frames:
        reader.feed(frame if isinstance(frame, str) else json.dumps(frame))
    return reader


def text(value: str) -> dict:
    return {"type": "text", "text": value}


@pytest.mark.requirement("router.frames.accumulate")
def test_deltas_are_appended_to_the_newest_block_of_the_last_snapshot():
    reader = read(
        {"type": "start", "partial": message()},
        {"type": "text_start", "partial": message(text("Hel"))},
        {"type": "text_delta", "delta": "lo"},
        {"type": "text_delta", "delta": " you"},
    )
    assert reader.partial() == message(text("Hello you"))
    assert reader.partial() is not reader.partial()


@pytest.mark.requirement("router.frames.accumulate")
def test_a_delta_with_a_snapshot_replaces_what_was_collected():
    reader = read(
        {"type": "text_start", "partial": message(text(""))},
        {"type": "text_delta", "delta": "a"},
        {"type": "text_delta", "delta": "b", "partial": message(text("ab"))},
        {"type": "text_delta", "delta": "c"},
    )
    assert reader.partial() == message(text("abc"))


@pytest.mark.requirement("router.frames.accumulate")
def test_end_snapshots_are_authoritative():
    thinking = {"type": "thinking", "text": "why", "signature": "s"}
    reader = read(
        {"type": "thinking_start", "partial": message({"type": "thinking", "text": ""})},
        {"type": "thinking_delta", "delta": "why"},
        {"type": "thinking_end", "partial": message(thinking)},
    )
    assert reader.partial() == message(thinking)


@pytest.mark.requirement("router.frames.accumulate")
def test_a_delta_without_a_start_opens_its_block():
    reader = read(
        {"type": "text_start", "partial": message(text("a"))},
        {"type": "thinking_delta", "delta": "hm"},
        {"type": "text_delta", "delta": "b"},
    )
    assert reader.partial() == message(text("a"), {"type": "thinking", "text": "hm"}, text("b"))


@pytest.mark.requirement("router.frames.calls")
def test_argument_text_is_collected_by_call_and_shown_as_far_as_it_goes():
    def call(key: str) -> dict:
        return {"type": "function_call", "id": key, "function_id": "f", "arguments": None}

    reader = read(
        {"type": "functioncall_start", "partial": message(call("a"))},
        {"type": "functioncall_delta", "id": "a", "delta": '{"x": 1, "y"'},
        {"type": "functioncall_start", "partial": message(call("a"), call("b"))},
        {"type": "functioncall_delta", "delta": '{"z'},
        {"type": "functioncall_delta", "id": "a", "delta": ": 2}"},
    )
    shown = [block["arguments"] for block in reader.partial()["content"]]
    assert shown == [{"x": 1, "y": 2}, {"_raw": '{"z'}]
    assert reader.raw_arguments() == {"a": '{"x": 1, "y": 2}', "b": '{"z'}
    ended = [{**call("a"), "arguments": {"x": 9}}, call("b")]
    reader.feed(json.dumps({"type": "functioncall_end", "partial": message(*ended)}))
    assert reader.partial()["content"][0]["arguments"] == {"x": 9}


@pytest.mark.requirement("router.frames.calls")
@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ('{"a": 1}', {"a": 1}),
        ("[1]", [1]),
        ('{"a": {"b": [1, 2]}, "c": "x', {"a": {"b": [1, 2]}, "_partial": True}),
        ('{"a": 12', {"_raw": '{"a": 12'}),
        ('{"a": 12,', {"a": 12, "_partial": True}),
        ('{"a" 1', {"_raw": '{"a" 1'}),
        ("", {"_raw": ""}),
        ("nonsense", {"_raw": "nonsense"}),
    ],
)
def test_arguments_that_are_not_complete(raw, shown):
    assert shown_arguments(raw) == shown


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.requirement("router.frames.calls")
@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), json_values, max_size=4), st.data())
def test_a_cut_argument_text_never_becomes_empty_or_wrong(arguments, data):
    whole = json.dumps(arguments)
    cut = data.draw(st.integers(0, len(whole) - 1))
    shown = shown_arguments(whole[:cut])
    if shown != {"_raw": whole[:cut]}:
        assert shown.pop("_partial") is True or "_partial" in arguments
        assert all(arguments[key] == value for key, value in shown.items())


@pytest.mark.requirement("router.frames.skipped")
@pytest.mark.parametrize(
    "item", ["", "{", "[]", "null", '{"type": 5}', '{"delta": "x"}', b"\xff", '{"type":"\\ud800"}']
)
def test_a_frame_that_does_not_parse_is_skipped(item):
    reader = read({"type": "text_start", "partial": message(text("a"))})
    assert reader.feed(item) is None
    assert reader.partial() == message(text("a"))


@pytest.mark.requirement("router.frames.terminal")
def test_terminal_frames_carry_the_message():
    reader = read({"type": "usage", "usage": {"input": 1}}, {"type": "done", "message": message(text("x"))})
    assert reader.ended == message(text("x"))
    assert reader.usage == {"input": 1}
    assert read({"type": "error", "error": message()}).ended == message()
    assert read({"type": "done"}).ended is None
    assert read().partial() is None


@pytest.mark.requirement("router.frames.accumulate")
@given(st.lists(st.tuples(st.sampled_from(["text", "thinking"]), st.text(max_size=5)), max_size=12))
def test_any_interleaving_of_slim_deltas_gives_the_same_texts(deltas):
    reader = read({"type": "start", "partial": message()})
    expected: list[dict] = []
    for kind, delta in deltas:
        if delta:
            if not expected or expected[-1]["type"] != kind:
                expected.append({"type": kind, "text": ""})
            expected[-1]["text"] += delta
        reader.feed(json.dumps({"type": f"{kind}_delta", "delta": delta}))
    assert reader.partial() == message(*expected)
