"""The matrix of a comparison: it fits, says what is unknown and prefers nobody (eval 12.5)."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from iii_contracts.eval.comparison import ObjectiveSummaryV1
from iii_stack.commands.eval_matrix import (
    DISTANCE_WIDTH,
    ROWS,
    VALUE_WIDTH,
    count,
    distance,
    duration,
    mean,
    money,
    print_matrix,
    share,
    shown,
)

MOST = 2**64 - 1


def item(session_id: str, summary: dict[str, Any] | None, delta: dict[str, Any], **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "session": {"session_id": session_id, "status": "done", "title": f"Title\nof {session_id}"},
        "lifecycle": {"session_status": "done", "turn_status": "awaiting_functions", "partial": summary is None},
        "deltas": dict.fromkeys(ROWS, delta),
        **fields,
    }
    return made if summary is None else {**made, "summary": summary}


def printed(*items: dict[str, Any]) -> str:
    out = io.StringIO()
    answer = {"baseline_session_id": items[0]["session"]["session_id"], "sessions": list(items)}
    print_matrix(Console(file=out, width=80, highlight=False), answer)
    return out.getvalue()


@pytest.mark.requirement("eval.cli.matrix")
def test_every_figure_has_a_row() -> None:
    assert set(ROWS) == set(ObjectiveSummaryV1.model_fields)


@pytest.mark.requirement("eval.cli.matrix")
@given(st.integers(0, MOST), st.floats(0, 1e300))
def test_every_value_fits_its_column(whole: int, real: float) -> None:
    for say, value in (
        (count, whole),
        (duration, whole),
        (money, real),
        (mean, real),
        (share, real),
        (money, whole),
        (share, real / 1e18),
    ):
        text = say(value)
        assert len(text) <= VALUE_WIDTH, (say, value, text)
        assert text


@pytest.mark.requirement("eval.cli.matrix")
@given(st.none() | st.floats(-1e18, 1e18), st.none() | st.floats(-100, 1e18))
def test_every_distance_fits_its_column(absolute: float | None, percent: float | None) -> None:
    assert len(distance({"absolute": absolute, "percent": percent})) <= DISTANCE_WIDTH


@pytest.mark.requirement("eval.cli.matrix")
@pytest.mark.parametrize(
    ("say", "value", "text"),
    [
        (count, 0, "0"),
        (count, 12_345, "12,345"),
        (count, 99_999, "99,999"),
        (count, 123_456, "123.5k"),
        (count, 999_999, "1.000M"),
        (count, MOST, "18.45E"),
        (money, 0, "$0.0000"),
        (money, 0.00001, "<$.0001"),
        (money, 0.0123, "$0.0123"),
        (money, 0.99996, "$1.00"),
        (money, 12.3, "$12.30"),
        (mean, 30.04, "30.0"),
        (share, 0.25, "25.0%"),
        (share, 1.25, "125.0%"),
        (duration, 900, "900 ms"),
        (duration, 12_340, "12.3 s"),
        (duration, 61_000, "1m 01s"),
        (duration, 3_725_000, "1h 02m"),
    ],
)
def test_values_are_said_as_people_read_them(say: Any, value: Any, text: str) -> None:
    assert say(value) == text


@pytest.mark.requirement("eval.cli.matrix")
@pytest.mark.parametrize(
    ("absolute", "percent", "text"),
    [
        (None, None, ""),
        (0.0, 0.0, "="),
        (0.0, None, "="),
        (5.0, None, "new"),
        (1.0, 3.41, "+3.4%"),
        (1.0, 12.0, "+12%"),
        (-1.0, -100.0, "-100%"),
        (1.0, 5000.0, ">999%"),
    ],
)
def test_distances_are_said_as_people_read_them(absolute: Any, percent: Any, text: str) -> None:
    assert distance({"absolute": absolute, "percent": percent}) == text


@pytest.mark.requirement("eval.cli.matrix")
def test_five_sessions_fit_80_columns() -> None:
    full = dict.fromkeys(ROWS, 123456.7)
    text = printed(*(item(f"s_{n}", full, {"absolute": -5.0, "percent": -50.0}) for n in range(5)))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert len([line for line in text.splitlines() if "-50%" in line]) == len(ROWS)
    assert "…" not in text


@pytest.mark.requirement("eval.cli.unknown")
def test_what_is_unknown_is_said_and_never_shown_as_zero() -> None:
    known = {**dict.fromkeys(ROWS, None), "generations": 0, "function_calls": 3}
    text = printed(
        item("a", known, {"absolute": None, "percent": None}),
        item("b", None, {"absolute": None, "percent": None}, errors=["harness::metrics: TIMEOUT: late"]),
    )
    lines = text.splitlines()
    assert next(line for line in lines if line.startswith("Calls")).split() == ["Calls", "3", "—"]
    assert next(line for line in lines if line.startswith("Generations")).split() == ["Generations", "0", "—"]
    assert next(line for line in lines if line.startswith("Tokens")).split() == ["Tokens", "—", "—"]
    assert not any("cache read" in line for line in lines), "a group that nobody knows has one line"
    assert "figures unknown" in text
    assert "harness::metrics: TIMEOUT: late" in text
    assert "is unknown" in lines[-1]
    assert shown([item("a", dict.fromkeys(ROWS, 1), {})]) == list(ROWS)
