"""What commands print: JSON for programs, tables and plain lines for people."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from iii_stack.errors import StackError

if TYPE_CHECKING:
    from rich.console import Console

AsJson = Annotated[
    bool,
    Parameter(name="--json", negative=(), show_default=False, help="Print exactly what the bus answered, as JSON."),
]
"""The option of every command that reads."""


def print_json(value: Any, *, one_line: bool = False) -> None:
    """One JSON document on stdout; on a terminal it is indented, unless it is to be one line."""
    indent = 2 if sys.stdout.isatty() and not one_line else None
    print(json.dumps(value, ensure_ascii=False, indent=indent), flush=True)


def console(*, stderr: bool = False) -> Console:
    """Where people read: stdout, or stderr for what does not belong to the answer."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=not sys.stdout.isatty())


def print_error(error: StackError, *, as_json: bool) -> None:
    """An error: an object on stdout for programs, a line with its hint on stderr for people."""
    if as_json:
        print(json.dumps({"error": {"code": error.code, "message": error.text}}, ensure_ascii=False), flush=True)
        return
    from rich.text import Text

    out = console(stderr=True)
    out.print(Text.assemble(("error: ", "bold red"), error.message))
    if error.hint:
        out.print(Text.assemble(("  try: ", "bold"), error.hint))


def when(milliseconds: int) -> str:
    """A time as people read it, in the zone of this machine."""
    return datetime.fromtimestamp(milliseconds / 1000).strftime("%m-%d %H:%M:%S")
