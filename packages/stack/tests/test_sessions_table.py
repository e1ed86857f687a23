"""The table of sessions on terminals of any width."""

from __future__ import annotations

from typing import Any

import pytest

from iii_stack.commands.sessions import TITLE_WIDTH, fitted

ROWS: list[dict[str, Any]] = [
    {
        "session_id": f"s_{n:036}",
        "status": "error",
        "status_reason": "The answer could not be started.",
        "message_count": 12,
        "updated_at": 0,
        "title": "What can you do here?",
    }
    for n in range(3)
]


def place_of_title(table: list[list[str]]) -> int:
    return sum(max(len(line[column]) for line in table) + 2 for column in range(len(table[0]) - 1))


@pytest.mark.requirement("stack.sessions.narrow")
@pytest.mark.parametrize(
    ("width", "heads"),
    [
        (None, ["SESSION", "STATUS", "MESSAGES", "CHANGED", "TITLE"]),
        (120, ["SESSION", "STATUS", "MESSAGES", "CHANGED", "TITLE"]),
        (100, ["SESSION", "STATUS", "MESSAGES", "CHANGED", "TITLE"]),
        (85, ["SESSION", "STATUS", "CHANGED", "TITLE"]),
        (80, ["SESSION", "STATUS", "TITLE"]),
        (40, ["SESSION", "STATUS", "TITLE"]),
    ],
)
def test_the_title_keeps_its_place_on_a_narrow_terminal(width: int | None, heads: list[str]) -> None:
    table = fitted(ROWS, width)
    assert table[0] == heads
    assert [line[-1] for line in table[1:]] == ["What can you do here?"] * 3
    if width is not None and width >= 80:
        assert place_of_title(table) + TITLE_WIDTH <= width
    assert ("(" in table[1][1]) == (width is None or width == 120)
