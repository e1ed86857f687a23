"""A caller that answers from a table and remembers what it was asked: for parts that only call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iii_kit import encoding
from iii_kit.bus import Opts
from iii_kit.errors import BusError


class Answers:
    """`answers` maps a function id to a value or to a function of the request; others are not found.

    Values are copied through JSON both ways, as on the bus.
    """

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        self.answers: dict[str, Any] = answers or {}
        self.calls: list[tuple[str, Any]] = []

    async def call(self, fn: str, data: Any, *, opts: Opts = Opts()) -> Any:
        self.calls.append((fn, encoding.copy(data)))
        if fn not in self.answers:
            raise BusError("function_not_found", f"Function '{fn}' is not registered.", fn)
        answer = self.answers[fn]
        if isinstance(answer, Callable):
            answer = answer(encoding.copy(data))
        if isinstance(answer, BusError):
            raise answer
        return encoding.copy(answer)

    def asked(self, fn: str) -> list[Any]:
        """The requests that went to `fn`."""
        return [data for called, data in self.calls if called == fn]
