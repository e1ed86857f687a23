"""JSON on the bus: what is carried exactly and what is refused by place (engine spec 2.3, 2.4)."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_kit.encoding import MAX_DEPTH, copy, decode, decode_but, encode, exchanged
from iii_kit.errors import PayloadTooLarge, Unencodable

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
)
FOREIGN = st.sampled_from(
    [math.nan, math.inf, -math.inf, b"bytes", {1, 2}, object(), 1j, "\ud800", {2: 1}, {"\udc00": 1}]
)


@pytest.mark.requirement("kit.encoding.exact")
@given(PLAIN)
def test_json_values_are_carried_exactly_and_shared_with_nobody(value: Any) -> None:
    copied = copy(value)
    assert copied == value
    assert json.loads(encode(value)) == value
    assert type(copied) is type(value)
    if isinstance(value, (list, dict)):
        assert copied is not value


@pytest.mark.requirement("kit.encoding.refused")
@given(st.lists(st.integers(0, 1), max_size=8), FOREIGN)
def test_a_foreign_value_is_refused_wherever_it_stands(steps: list[int], foreign: Any) -> None:
    value, path = foreign, ""
    for step in steps:
        if step:
            value, path = {"a": None, "k": value}, f".k{path}"
        else:
            value, path = [1, value], f"[1]{path}"
    with pytest.raises(Unencodable) as refused:
        encode(value)
    assert refused.value.path == f"${path}"
    assert refused.value.code == "unencodable"


@pytest.mark.requirement("kit.encoding.refused")
@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"k": value}])
def test_depth_ends_where_a_real_engine_stops_reading(wrap: Any) -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = wrap(value)
    assert decode(encode(value)) == value
    with pytest.raises(Unencodable, match="nested deeper than 126 levels"):
        encode(wrap(value))


@pytest.mark.requirement("kit.encoding.refused")
def test_a_value_that_contains_itself_is_too_deep() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(Unencodable, match="nested deeper"):
        encode(value)


@pytest.mark.requirement("kit.encoding.refused")
def test_size_is_counted_in_encoded_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iii_kit.encoding._SHORT", 0)
    monkeypatch.setattr("iii_kit.encoding.MAX_BYTES", 10)
    assert encode("ü" * 4) == b'"' + "ü".encode() * 4 + b'"'
    with pytest.raises(PayloadTooLarge, match="encoded payload is 12 bytes, over the limit of 10 bytes") as large:
        encode("ü" * 5)
    assert large.value.code == "payload_too_large"


@pytest.mark.requirement("kit.encoding.exact")
def test_tuples_are_arrays_and_numbers_keep_their_kind() -> None:
    assert copy((1, (2.0, None))) == [1, [2.0, None]]
    assert encode([1, 1.0, True, None]) == b"[1,1.0,true,null]"


@pytest.mark.requirement("kit.encoding.exact")
@pytest.mark.parametrize("value", [None, 1, 1.5, "text", [1, [2]], {"a": {"b": [True, None]}}, ("a", 1), [[1]] * 200])
def test_an_exchanged_value_is_a_fresh_one_beside_its_bytes(value: Any) -> None:
    data, fresh = exchanged(value)
    assert data == encode(value)
    assert fresh == decode(data)
    assert fresh is not value or not isinstance(value, (list, dict))


@pytest.mark.parametrize("value", [float("nan"), {1: 2}, b"bytes", {"a": {1, 2}}, "\ud800"])
def test_what_cannot_be_encoded_is_not_exchanged(value: Any) -> None:
    with pytest.raises(Unencodable):
        exchanged(value)


def test_levels_are_counted_when_exchanging() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    with pytest.raises(Unencodable, match="nested deeper"):
        exchanged(deep)
    assert exchanged(deep[0])[1] == deep[0]


def test_json_that_was_encoded_before_goes_in_as_it_is() -> None:
    assert encode({"row": msgspec.Raw(b'{"a":1}')}) == b'{"row":{"a":1}}'


LONG = msgspec.Raw(b'["' + b"x" * 5000 + b'"]')


@pytest.mark.requirement("kit.encoding.exact")
@pytest.mark.parametrize("value", [{"m": LONG, "n": 1}, {"m": [LONG, {"a": 1}], "n": {"b": [2]}}, {"m": [LONG]}])
def test_a_large_value_that_was_encoded_in_parts_is_decoded_by_its_receiver(value: Any) -> None:
    data, whole = exchanged(value, lazily=True)
    assert data == encode(value) and whole == msgspec.Raw(data)
    read = decode_but(data, ("m",))
    assert {**read, "m": decode(bytes(read["m"]))} == decode(data)
    with pytest.raises(Unencodable, match="not a JSON number"):
        exchanged({**value, "n": float("inf")}, lazily=True)
    assert exchanged(value) == (data, decode(data))


def test_what_is_no_object_is_decoded_whole() -> None:
    assert decode_but(b'["m"]', ("m",)) == ["m"]
