"""Text in pieces becomes whole lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_stack.chat.lines import Lines

pytestmark = pytest.mark.requirement("stack.chat.conversation")


@given(st.lists(st.text("ab \n", max_size=30), max_size=10), st.integers(20, 40))
def test_every_line_is_whole_and_nothing_but_spaces_is_lost(pieces: list[str], width: int) -> None:
    written: list[str] = []
    lines = Lines(written.append, lambda: width)
    for piece in [*pieces, "\n"]:
        lines(piece)
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in written)
    said = "".join(pieces)
    assert "".join(written).replace(" ", "").replace("\n", "") == said.replace(" ", "").replace("\n", "")
    assert all(len(line) <= width + 1 for line in written)


def test_a_long_line_is_broken_between_words_while_it_grows() -> None:
    written: list[str] = []
    lines = Lines(written.append, lambda: 20)
    for word in "one two three four five six":
        lines(word)
    assert written == ["one two three four\n"]
    lines("\n")
    assert written[1:] == ["five six\n"]
    lines("x" * 45)
    assert written[2:] == ["x" * 20 + "\n", "x" * 20 + "\n"]


def test_a_line_that_ends_in_a_later_piece_is_broken_between_words_too() -> None:
    written: list[str] = []
    lines = Lines(written.append, lambda: 20)
    lines("it will be in the li")
    lines("st;\n")
    assert written == ["it will be in the\n", "list;\n"]
