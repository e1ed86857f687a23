"""Cron expressions (engine spec 15.2): six or seven fields in UTC, day of month and day of week both must match.

The dialect counts Sunday as 1, has no `L` and no `#`, and knows years: stricter than cron libraries, so it is
read here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

FIRST_YEAR, LAST_YEAR = 1970, 2100

_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_NICKNAMES = {
    "@hourly": "0 0 * * * *",
    "@daily": "0 0 0 * * *",
    "@weekly": "0 0 0 * * 1",
    "@monthly": "0 0 0 1 * *",
    "@yearly": "0 0 0 1 1 *",
}
_NUMBER = re.compile(r"[0-9]{1,4}")


class BadExpression(ValueError):
    """An expression that is none; the text says why."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    lowest: int
    highest: int
    names: Sequence[str] = ()

    def parse(self, text: str) -> frozenset[int]:
        """The values that a field matches."""
        found: set[int] = set()
        for term in text.split(","):
            found.update(self._term(term))
        return frozenset(found)

    def _term(self, term: str) -> range:
        base, slash, step_text = term.partition("/")
        step = self._step(step_text) if slash else 1
        if base in ("*", "?"):
            return range(self.lowest, self.highest + 1, step)
        first, dash, last = base.partition("-")
        low = self._value(first)
        if dash:
            high = self._value(last)
            if high < low:
                raise BadExpression(f"{self.name}: the range `{base}` goes down")
        else:
            high = self.highest if slash else low
        return range(low, high + 1, step)

    def _step(self, text: str) -> int:
        if not _NUMBER.fullmatch(text) or int(text) == 0:
            raise BadExpression(f"{self.name}: `{text}` is no step")
        return int(text)

    def _value(self, text: str) -> int:
        if _NUMBER.fullmatch(text):
            value = int(text)
            if self.lowest <= value <= self.highest:
                return value
            raise BadExpression(f"{self.name}: {value} is not within {self.lowest} to {self.highest}")
        for index, name in enumerate(self.names):
            if text.lower() in (name, name[:3]):
                return self.lowest + index
        raise BadExpression(f"{self.name}: `{text}` is not understood")


_FIELDS = (
    _Field("second", 0, 59),
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 1, 7, _DAYS),
    _Field("year", FIRST_YEAR, LAST_YEAR),
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The times that an expression matches."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    years: frozenset[int]

    def after(self, moment: datetime) -> datetime | None:
        """The first matching time after `moment` (UTC), or None when there is none up to the last known year."""
        start = moment.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)
        day, earliest = start.date(), start.time()
        while day.year <= LAST_YEAR:
            if not self._has_month(day):
                day, earliest = _next_month(day), time()
                continue
            if day.day in self.days and day.isoweekday() % 7 + 1 in self.weekdays:
                found = self._time_from(earliest)
                if found is not None:
                    return datetime.combine(day, found, UTC)
            day, earliest = day + timedelta(days=1), time()
        return None

    def _has_month(self, day: date) -> bool:
        return day.year in self.years and day.month in self.months

    def _time_from(self, earliest: time) -> time | None:
        """The first matching time of day that is not before `earliest`."""
        for hour in self.hours:
            if hour < earliest.hour:
                continue
            for minute in self.minutes:
                if (hour, minute) < (earliest.hour, earliest.minute):
                    continue
                for second in self.seconds:
                    if (hour, minute, second) >= (earliest.hour, earliest.minute, earliest.second):
                        return time(hour, minute, second)
        return None


def parse(expression: str) -> Schedule:
    """Read an expression. Raises `BadExpression`."""
    text = expression.strip()
    parts = _NICKNAMES.get(text.lower(), text).split()
    if len(parts) not in (6, 7):
        raise BadExpression(f"{len(parts)} fields, expected six (second first) or seven")
    fields = [field.parse(part) for field, part in zip(_FIELDS, [*parts, "*"][:7], strict=True)]
    second, minute, hour = (tuple(sorted(field)) for field in fields[:3])
    return Schedule(second, minute, hour, *fields[3:])


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)
