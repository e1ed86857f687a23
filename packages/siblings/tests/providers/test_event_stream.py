"""Server-sent events, however the bytes are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_siblings.providers import event_stream
from iii_siblings.providers.event_stream import EventStream, EventTooLarge
from iii_siblings.providers.payload import parsed, scrub


def read(*chunks: bytes) -> list[bytes]:
    stream = EventStream()
    return [event for chunk in chunks for event in stream.feed(chunk)] + stream.flush()


@pytest.mark.requirement("providers.sse")
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_lines_end_in_three_ways(newline):
    text = newline.join(
        [b"\xef\xbb\xbfevent: x", b"data: one", b"", b": ping", b"", b"data:two", b"data: three", b"", b""]
    )
    assert read(text) == [b"one", b"two\nthree"]


@pytest.mark.requirement("providers.sse")
def test_an_event_without_its_blank_line_counts_when_its_lines_are_whole():
    assert read(b"data: a\n") == [b"a"]
    assert read(b"data: a") == []
    assert read(b"data: a\n\ndata: {") == [b"a"]
    assert read(b"data\n\nid: 5\n\n") == [b""]


@pytest.mark.requirement("providers.sse")
@given(st.data())
def test_cuts_change_nothing(data):
    payloads = data.draw(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1), max_size=4)
    )
    newline = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    whole = "".join(f"data: {payload}{newline}{newline}" for payload in payloads).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    chunks = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert read(*chunks) == [payload.encode() for payload in payloads]


@pytest.mark.requirement("providers.sse")
def test_an_event_without_end_is_bounded(monkeypatch):
    monkeypatch.setattr(event_stream, "MAX_EVENT_BYTES", 100)
    stream = EventStream()
    stream.feed(b"data: " + b"x" * 60)
    with pytest.raises(EventTooLarge):
        stream.feed(b"x" * 60)


@pytest.mark.requirement("providers.payload")
def test_values_that_the_bus_refuses_are_made_harmless():
    assert parsed(b'{"a": "\\ud83d\\ude00 \\ud83d"}') == {"a": "\U0001f600 �"}
    assert parsed(b'{"a": "\\ud83d"}') == {"a": "�"}
    for bad in (b"NaN", b'{"a": Infinity}', b"{", b""):
        with pytest.raises(ValueError, match=r".*"):
            parsed(bad)
    assert scrub("a\ud800b") == "a�b"
