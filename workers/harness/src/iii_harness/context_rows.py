"""The last context snapshot of each session, in scope `harness_context` (harness-loop 4, 12.7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

from iii_contracts.problems import is_object
from iii_harness.state_rows import StateRows
from iii_kit.bus import Caller, Json, Opts

SCOPE: Final = "harness_context"

ContextRows: TypeAlias = StateRows[dict[str, Any]]


def context_rows(bus: Caller, opts: Callable[[], Opts]) -> ContextRows:
    """The rows, each a snapshot as `harness::status` shows it."""
    return StateRows(bus, SCOPE, _parsed, dict, opts)


def _parsed(value: Json) -> dict[str, Any]:
    if not is_object(value):
        raise TypeError("a context snapshot is an object")
    return cast("dict[str, Any]", value)
