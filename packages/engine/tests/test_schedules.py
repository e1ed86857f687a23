"""Cron expressions: what they match, and what they refuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_embedded.modules.schedules import BadExpression, parse

START = datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=UTC)


@pytest.mark.requirement("cron.expression.next")
@pytest.mark.parametrize(
    ("expression", "due"),
    [
        ("*/7 * * * * *", "2026-01-01T12:00:07"),
        ("0 * * * * *", "2026-01-01T12:01:00"),
        ("0 0 0 * * 7", "2026-01-03T00:00:00"),
        ("0 0 0 * * sunday", "2026-01-04T00:00:00"),
        ("0 0 0 13 * FRI", "2026-02-13T00:00:00"),
        ("0 0 0 29 2 ?", "2028-02-29T00:00:00"),
        ("59 59 23 31 12 *", "2026-12-31T23:59:59"),
        ("0 0 0 1 1 * 2099", "2099-01-01T00:00:00"),
        ("1-5/2 30 6 * Mar-Apr Mon", "2026-03-02T06:30:01"),
        ("0 0 12 1 1 *", "2027-01-01T12:00:00"),
        ("@hourly", "2026-01-01T13:00:00"),
        ("@weekly", "2026-01-04T00:00:00"),
        ("@MONTHLY", "2026-02-01T00:00:00"),
    ],
)
def test_the_next_time(expression: str, due: str) -> None:
    assert parse(expression).after(START) == datetime.fromisoformat(due).replace(tzinfo=UTC)


def test_a_time_that_never_comes_is_none() -> None:
    assert parse("0 0 0 30 2 *").after(START) is None
    assert parse("0 0 0 * * * 2025").after(START) is None


def test_the_present_second_is_over() -> None:
    moment = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
    assert parse("0 * * * * *").after(moment) == moment + timedelta(minutes=1)


fields = st.sampled_from(["*", "*/5", "0", "3", "1-3", "2,4"])


@pytest.mark.requirement("cron.expression.next")
@given(st.tuples(fields, fields, fields), st.integers(0, 200_000))
def test_the_next_time_is_the_first_that_matches(parts: tuple[str, str, str], offset: int) -> None:
    schedule, moment = parse(f"{' '.join(parts)} * * *"), START + timedelta(seconds=offset)
    candidate = moment.replace(microsecond=0) + timedelta(seconds=1)

    def matches(value: int, allowed: tuple[int, ...]) -> bool:
        return value in allowed

    while not (matches(candidate.minute, schedule.minutes) and matches(candidate.hour, schedule.hours)):
        candidate = candidate.replace(second=0) + timedelta(minutes=1)
    while not matches(candidate.second, schedule.seconds):
        candidate += timedelta(seconds=1)
        while not (matches(candidate.minute, schedule.minutes) and matches(candidate.hour, schedule.hours)):
            candidate = candidate.replace(second=0) + timedelta(minutes=1)
    assert schedule.after(moment) == candidate


@pytest.mark.requirement("cron.expression.refused")
@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("* * * * *", "5 fields"),
        ("60 * * * * *", "second: 60"),
        ("0 0 0 * * 0", "day of week: 0"),
        ("5-1 * * * * *", "goes down"),
        ("*/0 * * * * *", "no step"),
        ("0 0 0 L * *", "`L`"),
        ("0 0 0 * * 1#2", "`1#2`"),
        ("-1 * * * * *", "second"),
        ("1,,2 * * * * *", "second"),
        ("0 0 0 * * * 1969", "year: 1969"),
        ("@every 5s", "2 fields"),
        ("²  * * * * *", "second"),
    ],
)
def test_a_refusal_names_the_field(expression: str, word: str) -> None:
    with pytest.raises(BadExpression) as caught:
        parse(expression)
    assert word in str(caught.value)
