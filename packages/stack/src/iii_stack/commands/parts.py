"""Options that the commands of separate parts share: where the engine is, where their data lies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from iii_stack.data_directory import locate
from iii_stack.reach import Reach

Engine = Annotated[
    str | None,
    Parameter(
        env_var="III_URL", help="URL of the engine. Left out: III_URL, else the running stack of the data directory."
    ),
]

LogLevel = Annotated[Literal["debug", "info", "warning", "error"], Parameter(help="How much to log on stderr.")]

AcceptMissingLog = Annotated[
    bool,
    Parameter(
        negative=(),
        show_default=False,
        help="Open a database whose write-ahead log is gone; writes of before that are lost with it.",
    ),
]

TellAsJson = Annotated[
    bool, Parameter(name="--json", negative=(), show_default=False, help="Tell that it works as one line of JSON.")
]


def engine_url(engine: str | None) -> str:
    """The URL of the engine. Raises `StackError` when none is named and no stack runs."""
    return Reach(engine).url()


def own_directory(given: Path | None, part: str) -> Path:
    """The data directory of a part: the one given, else a folder of its own in that of the stack."""
    return given.expanduser().absolute() if given is not None else locate() / part
