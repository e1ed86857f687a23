"""One scope of `state::*` as rows of one type (harness-loop 4).

Calls are built as values, so that they can ride in a `Bus.sequence`. A row that does not parse is skipped with a
warning, so that it never hides the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from iii_harness.errors import state_failed
from iii_kit.bus import Call, Caller, Json, Opts
from iii_kit.clients.state import listed
from iii_kit.errors import BusError, EpochEnded

log = logging.getLogger(__name__)

Row = TypeVar("Row")


class StateRows(Generic[Row]):
    """The rows of one scope: `parse` raises on a row that does not fit, `dump` gives its JSON."""

    def __init__(
        self,
        bus: Caller,
        scope: str,
        parse: Callable[[Json], Row],
        dump: Callable[[Row], Json],
        opts: Callable[[], Opts],
    ) -> None:
        self._bus = bus
        self.scope = scope
        self._parse = parse
        self._dump = dump
        self._opts = opts

    def put(self, key: str, row: Row) -> Call:
        """The call that stores `row`."""
        data = {"scope": self.scope, "key": key, "value": self._dump(row)}
        return Call("state::set", data, opts=self._opts())

    def drop(self, key: str) -> Call:
        """The call that deletes the row of `key`."""
        return Call("state::delete", {"scope": self.scope, "key": key}, opts=self._opts())

    async def read(self, key: str) -> Row | None:
        """The row of `key`; None when there is none, or when it does not parse."""
        try:
            value = await self._bus.call("state::get", {"scope": self.scope, "key": key}, opts=self._opts())
        except EpochEnded:
            raise
        except BusError as error:
            raise state_failed(f"read {self.scope}/{key}", error) from error
        return None if value is None else self._row(value)

    async def list(self) -> list[Row]:
        """Every row that parses."""
        try:
            answer = await self._bus.call("state::list", {"scope": self.scope}, opts=self._opts())
        except EpochEnded:
            raise
        except BusError as error:
            raise state_failed(f"list {self.scope}", error) from error
        rows = (self._row(value) for value in listed(answer))
        return [row for row in rows if row is not None]

    def _row(self, value: Json) -> Row | None:
        try:
            return self._parse(value)
        except Exception as error:
            log.warning("a row of %s does not parse and is skipped: %s", self.scope, error)
            return None
