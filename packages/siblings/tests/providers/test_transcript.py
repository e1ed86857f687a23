"""Transcripts go out whole, whatever comes in (siblings 6.1)."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_kit.encoding import encode
from iii_siblings.providers.function_names import FunctionNames, encoded
from iii_siblings.providers.openai.body import prepared
from iii_siblings.providers.openai.chat_body import chat_body
from iii_siblings.providers.openai.endpoint import endpoint
from iii_siblings.providers.openai.responses_body import responses_body
from iii_siblings.providers.transcript import INTERRUPTED, whole


def user(text: str) -> dict:
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}


def assistant(*calls: str, text: str = "") -> dict:
    blocks = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "function_call", "id": call, "function_id": "a::b", "arguments": {}} for call in calls]
    return {"role": "assistant", "content": blocks, "stop_reason": "end", "timestamp": 1}


def result(call: str, text: str, **fields) -> dict:
    content = [{"type": "text", "text": text}]
    message = {"role": "function_result", "function_call_id": call, "function_id": "a::b", "content": content}
    return {**message, "timestamp": 1, **fields}


def shape(messages: list[dict]) -> list[str]:
    out = []
    for message in messages:
        text = "".join(block.get("text", "") for block in message["content"])
        calls = [block["id"] for block in message["content"] if block["type"] == "function_call"]
        out.append(f"{message['role'][0]}:{message.get('function_call_id', '')}{text}{','.join(calls)}")
    return out


@pytest.mark.requirement("providers.transcript.whole")
def test_custom_messages_are_dropped_and_results_move_behind_their_call():
    messages = [user("x"), assistant("1", "2"), user("y"), result("2", "two"), {"role": "custom"}, result("1", "one")]
    assert shape(whole(messages)) == ["u:x", "a:1,2", "f:1one", "f:2two", "u:y"]


@pytest.mark.requirement("providers.transcript.whole")
def test_the_latest_of_several_results_wins_and_one_without_a_call_is_dropped():
    messages = [assistant("1"), result("1", "old"), result("1", "new"), result("9", "stray")]
    assert shape(whole(messages)) == ["a:1", "f:1new"]


@pytest.mark.requirement("providers.transcript.whole")
def test_a_call_without_a_result_gets_one():
    out = whole([assistant("1"), user("go on")])
    assert shape(out) == ["a:1", f"f:1{INTERRUPTED}", "u:go on"]
    assert out[1]["is_error"] is True


@pytest.mark.requirement("providers.transcript.whole")
def test_ids_that_repeat_are_told_apart_and_keep_their_own_result():
    messages = [
        assistant("0"),
        result("0", "first"),
        assistant("0", "", ""),
        result("0", "second"),
        result("", "third"),
    ]
    assert shape(whole(messages)) == [
        "a:0",
        "f:0first",
        "a:0_2,call,call_2",
        "f:0_2second",
        "f:callthird",
        f"f:call_2{INTERRUPTED}",
    ]


@pytest.mark.requirement("providers.transcript.denied")
def test_a_denied_result_says_so():
    details = {"status": "denied", "denied_by": "policy"}
    out = whole([assistant("1"), result("1", "why", details=details)])
    assert out[1]["content"] == [
        {"type": "text", "text": '[PERMISSION_DENIED]\n{"status":"denied","denied_by":"policy"}\n\nwhy'}
    ]


ids = st.sampled_from(["", "a", "b", "c"])
texts = st.text(st.characters(codec="utf-8"), max_size=6)
arguments = st.none() | st.dictionaries(texts, st.integers() | texts, max_size=2) | st.just({"_raw": '{"a'})
blocks = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": texts}),
    st.fixed_dictionaries({"type": st.just("thinking"), "text": texts}),
    st.fixed_dictionaries({"type": st.just("redacted_thinking"), "data": texts}),
    st.fixed_dictionaries(
        {"type": st.just("image"), "mime": st.just("image/png"), "data": st.sampled_from(["", "AA"])}
    ),
    st.fixed_dictionaries({"type": st.just("file"), "attachment_id": texts}),
    st.fixed_dictionaries({"type": st.just("from_the_future"), "x": st.integers()}),
    st.fixed_dictionaries(
        {
            "type": st.just("function_result"),
            "function_call_id": ids,
            "content": st.just([{"type": "text", "text": "r"}]),
        }
    ),
)
calls = st.fixed_dictionaries(
    {"type": st.just("function_call"), "id": ids, "function_id": st.sampled_from(["a::b", "x.y", ""])},
    optional={"arguments": arguments},
)
messages = st.lists(
    st.one_of(
        st.fixed_dictionaries({"role": st.just("user"), "content": st.lists(blocks, max_size=3)}),
        st.fixed_dictionaries({"role": st.just("assistant"), "content": st.lists(blocks | calls, max_size=4)}),
        st.fixed_dictionaries(
            {
                "role": st.just("function_result"),
                "function_call_id": ids,
                "function_id": st.just("a::b"),
                "content": st.lists(blocks, max_size=2),
            },
            optional={"details": st.none() | st.just({"status": "denied"}), "is_error": st.booleans()},
        ),
        st.fixed_dictionaries(
            {"role": st.just("custom"), "custom_type": texts, "content": st.lists(blocks, max_size=1)}
        ),
    ),
    max_size=10,
)


@pytest.mark.requirement("providers.transcript.whole")
@given(messages)
def test_any_transcript_goes_out_whole(given_messages):
    before = copy.deepcopy(given_messages)
    out = whole(given_messages)
    assert given_messages == before
    seen: set[str] = set()
    expected: list[str] = []
    for message in out:
        if message["role"] == "function_result":
            assert message["function_call_id"] == expected.pop(0)
            continue
        assert not expected
        assert message["role"] in ("user", "assistant")
        expected = [block["id"] for block in message["content"] if block["type"] == "function_call"]
        assert all(expected)
        assert not seen.intersection(expected)
        assert len(set(expected)) == len(expected)
        seen.update(expected)
    assert not expected
    assert [m for m in out if m["role"] == "user"] == [m for m in before if m["role"] == "user"]
    assert whole(out) == out or any("denied" in str(m.get("details")) for m in out)


@pytest.mark.requirement("providers.openai.chat_body")
@given(messages)
def test_any_transcript_makes_a_body_that_chat_completions_takes(given_messages):
    request = {"model": "m", "messages": given_messages, "system_prompt": "be good"}
    body = chat_body(prepared(request, endpoint("http://x/v1"), {}))
    encode(body)
    open_calls: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
            assert isinstance(message["content"], str)
            continue
        assert not open_calls
        assert message["content"] is not None
        assert message["content"] != "" or message.get("tool_calls") or message["role"] == "assistant"
        open_calls = [call["id"] for call in message.get("tool_calls", [])]
        for call in message.get("tool_calls", []):
            json.loads(call["function"]["arguments"])
    assert not open_calls


@pytest.mark.requirement("providers.openai.responses_body")
@given(messages)
def test_any_transcript_makes_a_body_that_responses_takes(given_messages):
    body = responses_body(prepared({"model": "m", "messages": given_messages}, endpoint(None), {}))
    encode(body)
    called = [item["call_id"] for item in body["input"] if item["type"] == "function_call"]
    answered = [item["call_id"] for item in body["input"] if item["type"] == "function_call_output"]
    assert sorted(called) == sorted(answered)
    assert len(set(called)) == len(called)
    assert "thinking" not in json.dumps(
        [item for item in body["input"] if "content" in item and item["role"] != "user"]
    )


@pytest.mark.requirement("providers.names")
def test_function_names_go_out_and_come_back():
    names = FunctionNames(["a::b", "my__fn", "dotted.name", "a__b", "x" * 80])
    for function_id in ("a::b", "my__fn", "dotted.name", "a__b", "x" * 80):
        name = names.encode(function_id)
        assert len(name) <= 64
        assert names.decode(name) == function_id
    assert names.encode("other::fn") == "other__fn"
    assert names.decode("other__fn") == "other::fn"


@pytest.mark.requirement("providers.names")
@given(st.lists(st.text(min_size=1, max_size=90), unique=True, max_size=6))
def test_offered_names_are_legal_and_distinct(offered):
    names = FunctionNames(offered)
    wire = [names.encode(function_id) for function_id in offered]
    assert len(set(wire)) == len(wire)
    assert all(name.replace("_", "").replace("-", "").isascii() and 1 <= len(name) <= 64 for name in wire)
    assert [names.decode(name) for name in wire] == offered
    assert all(encoded(name) == name for name in wire)
