"""Reading and writing frames: strict values, absent fields, the caller's stamp (engine spec 2.3, 3, 5.2, 7)."""

from __future__ import annotations

import json
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_contracts.spec import CALLER
from iii_embedded import frames, messages
from iii_embedded.calls import Failure, Request
from iii_embedded.routing import FUNCTION_ENTRY, readable, with_function

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=10,
)
SPACES = st.sampled_from([None, 1, 4])


@pytest.mark.requirement("engine.frames.exact_values")
@given(JSON, SPACES, st.booleans())
def test_a_payload_reaches_the_worker_with_its_bytes(data: Any, indent: int | None, ascii_only: bool) -> None:
    payload = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    frame = frames.read(b'{"type":"invokefunction","function_id":"f","data":%b}' % payload.encode())
    assert isinstance(frame, frames.InvokeFunction)
    sent = messages.invoke(Request("f", bytes(frame.data)), str(uuid.UUID(int=1)))
    assert payload.encode() in sent


@pytest.mark.requirement("engine.calls.stamp")
@given(JSON, SPACES)
def test_an_object_is_stamped_and_everything_else_left_alone(data: Any, indent: int | None) -> None:
    payload = json.dumps(data, indent=indent).encode()
    stamped = json.loads(messages.stamped(payload, "me"))
    assert stamped == ({**data, CALLER: "me"} if isinstance(data, dict) else data)
    assert messages.stamped(payload, None) == payload


@pytest.mark.requirement("engine.calls.stamp")
@pytest.mark.parametrize(
    "payload", ['{"_caller_worker_id":"you"}', '{"\\u005fcaller_worker_id":"you"}', '{"a":{"_caller_worker_id":1}}']
)
def test_the_stamp_of_the_engine_is_the_last_word(payload: str) -> None:
    stamped = messages.stamped(payload.encode(), "me")
    assert json.loads(stamped)[CALLER] == "me"
    assert stamped.count(b'{"_caller_worker_id"') + stamped.count(b',"_caller_worker_id"') <= 1 + payload.count(
        '{"_', 1
    )


@pytest.mark.requirement("engine.frames.unreadable")
@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_nothing(data: bytes) -> None:
    try:
        frames.read(data)
    except frames.Unreadable:
        pass


@pytest.mark.requirement("engine.frames.unreadable")
@pytest.mark.parametrize("text", ["1e308", "1e-400", "123456e100", '"1e999"', '{"1e999":"\\"1e999"}', "0." + "1" * 400])
def test_numbers_inside_the_range_and_digits_inside_texts_are_fine(text: str) -> None:
    assert frames.read(b'{"type":"invokefunction","function_id":"f","data":%b}' % text.encode())


@pytest.mark.requirement("engine.frames.unreadable")
@pytest.mark.parametrize("text", ["1e999", "-2E+400", "[1.5e0309]", '{"a\\\\":9e310}', '["\\"",8E999]', "7" * 310])
def test_numbers_beyond_the_range_are_refused(text: str) -> None:
    with pytest.raises(frames.Unreadable):
        frames.read(b'{"type":"invokefunction","function_id":"f","data":%b}' % text.encode())


@pytest.mark.requirement("engine.frames.absent")
def test_absent_and_null_optional_fields_are_the_same() -> None:
    full = {"type": "registerfunction", "id": "f", "description": None, "metadata": None, "request_format": None}
    for frame in (frames.read(json.dumps(full).encode()), frames.read(b'{"type":"registerfunction","id":"f"}')):
        assert isinstance(frame, frames.RegisterFunction)
        assert (frame.description, frames.kept(frame.metadata), frames.kept(frame.request_format)) == (None,) * 3
    assert frames.given(msgspec.Raw(b"false")) == b"false"


@pytest.mark.requirement("engine.calls.ids")
def test_an_invocation_id_may_be_spelled_in_any_way() -> None:
    id_ = "0af76519-16cd-43dd-8448-eb211c80319c"
    for spelling in (id_, id_.upper(), id_.replace("-", ""), f"{{{id_}}}", f"urn:uuid:{id_}"):
        assert frames.canonical(spelling) == id_
    for wrong in ("", "7", id_[:-1], "g" * 32):
        with pytest.raises(frames.Unreadable):
            frames.canonical(wrong)


@pytest.mark.requirement("engine.calls.results")
def test_a_result_carries_the_callers_own_trace_and_no_null() -> None:
    call = frames.InvokeFunction("f", msgspec.Raw(b"{}"), traceparent="T", baggage="B")
    assert json.loads(messages.result(call, "i", b"null")) == {
        "type": "invocationresult",
        "invocation_id": "i",
        "function_id": "f",
        "traceparent": "T",
        "baggage": "B",
    }
    plain = frames.InvokeFunction("f", msgspec.Raw(b"{}"))
    failed = json.loads(messages.result(plain, "i", Failure("C", "m")))
    assert failed["error"] == {"code": "C", "message": "m"} and "result" not in failed
    assert json.loads(messages.result(plain, "i", b'{"a":null}'))["result"] == {"a": None}


@pytest.mark.requirement("engine.trace.baggage")
@pytest.mark.parametrize(
    ("given_baggage", "kept"),
    [
        (None, []),
        ("", []),
        ("a=1,b=2;p=x", ["a=1", "b=2;p=x"]),
        (f"a=1, {FUNCTION_ENTRY} = old ,b=2", ["a=1", "b=2"]),
    ],
)
def test_the_called_function_is_one_entry_of_the_baggage_and_the_others_stay(
    given_baggage: str | None, kept: list[str]
) -> None:
    assert with_function(given_baggage, "a::b c").split(",") == [*kept, f"{FUNCTION_ENTRY}=a::b%20c"]


@pytest.mark.requirement("engine.trace.readable")
def test_an_unreadable_traceparent_is_dropped_and_any_flags_pass() -> None:
    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    for flags in ("00", "01", "03", "ff"):
        assert readable(f"00-{trace}-{span}-{flags}") == f"00-{trace}-{span}-{flags}"
    wrong = [None, "", "x", f"00-{trace}-{span}", f"00-{'0' * 32}-{span}-01", f"00-{trace}-{'0' * 16}-01"]
    assert [readable(text) for text in wrong] == [None] * len(wrong)
    assert readable(f"00-{trace.upper()}-{span}-01") is None
