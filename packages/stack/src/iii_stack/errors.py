"""Errors of the command line: what went wrong, and what to do about it."""

from __future__ import annotations

import re

from iii_kit.errors import BusError

LISTING = "`iii-stack call engine::functions::list` lists what there is"

_CODE = re.compile(r"^([a-z][a-z0-9_-]*/[a-z0-9_-]+): (.*)$", re.DOTALL)


class StackError(Exception):
    """A command cannot do what it was asked for. `code` is for programs, the text and the hint are for people."""

    def __init__(self, code: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    @property
    def text(self) -> str:
        """Message and hint as one text."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


class WrongUsage(StackError):
    """The command line itself is wrong: nothing was done."""


def of_bus(error: BusError) -> StackError:
    """A failed call as an error of the command: a worker's own code wins over that of the wire."""
    found = _CODE.match(error.message)
    if found is not None:
        return StackError(found[1], found[2])
    hint = LISTING if error.code == "function_not_found" else None
    return StackError(error.code, error.message, hint=hint)
