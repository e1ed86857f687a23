"""`harness::metrics` (harness-loop 15.2): what a tree of sessions used, counted over its transcripts.

Null is not zero: a counter that more than one generation leaves open, or that none reports, is unknown. One open
generation is let pass, since the running one has no usage yet.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError

from iii_contracts.harness.metrics import MetricsRequest
from iii_contracts.messages import AgentMessage, AssistantMessage, FunctionCallBlock, FunctionResultMessage, Usage
from iii_contracts.problems import describe
from iii_harness.errors import dependency
from iii_harness.record import TurnRecord
from iii_harness.trace_metrics import traces
from iii_harness.tree import Node, SessionTrees
from iii_kit.bus import Caller, Invocation, Json
from iii_kit.clients.session import SessionClient
from iii_kit.errors import BusError, EpochEnded

COUNTERS: Final = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_tokens": "cache_read",
    "cache_write_tokens": "cache_write",
    "reasoning_tokens": "reasoning",
    "cost_usd": "cost_usd",
}
"""Counters of a response, and the fields of usage that they sum."""

_message: TypeAdapter[AgentMessage] = TypeAdapter(AgentMessage, config=ConfigDict(defer_build=True))


@dataclass(slots=True)
class Tally:
    """What some transcripts hold."""

    usages: list[Usage] = field(default_factory=list[Usage])
    """One per generation, in order; without fields where nothing was reported."""
    function_calls: int = 0
    function_call_errors: int = 0

    def add(self, message: AgentMessage) -> None:
        """Count one message."""
        if isinstance(message, AssistantMessage):
            self.usages.append(message.usage or Usage())
            self.function_calls += sum(isinstance(block, FunctionCallBlock) for block in message.content)
        elif isinstance(message, FunctionResultMessage):
            self.function_call_errors += message.is_error

    def join(self, other: Tally) -> None:
        """Add what `other` holds."""
        self.usages += other.usages
        self.function_calls += other.function_calls
        self.function_call_errors += other.function_call_errors

    def public(self) -> dict[str, Any]:
        """As a response has it."""
        return {
            "turns": len(self.usages),
            "function_calls": self.function_calls,
            "function_call_errors": self.function_call_errors,
            **{name: summed([getattr(usage, of) for usage in self.usages]) for name, of in COUNTERS.items()},
        }


def summed(values: Sequence[float | None]) -> float | None:
    """The sum of one counter over generations; None when it is unknown."""
    reported = [value for value in values if value is not None]
    if not reported or len(values) - len(reported) > 1:
        return None
    return sum(reported) if all(isinstance(value, int) for value in reported) else math.fsum(reported)


class Metrics:
    """Reads and counts."""

    def __init__(
        self,
        bus: Caller,
        trees: SessionTrees,
        load: Callable[[str], Awaitable[TurnRecord | None]],
        context: Callable[[str], Awaitable[Json]],
    ) -> None:
        self._bus = bus
        self._sessions = SessionClient(bus)
        self._trees = trees
        self._load = load
        self._context = context

    async def metrics(self, request: MetricsRequest, _: Invocation) -> dict[str, Any]:
        """Handler of `harness::metrics`."""
        tree = await self._trees.below(await self._trees.root_of(request.any_session_id))
        total, rows, ended = Tally(), list[dict[str, Any]](), True
        for node in tree.nodes:
            tally = await self._tally(node.session_id)
            total.join(tally)
            rows.append(await self._row(node, tally))
            record = await self._load(node.session_id)
            ended = ended and record is not None and record.terminal
        response: dict[str, Any] = {
            "root_session_id": tree.root_session_id,
            "complete": tree.complete and ended,
            "totals": {"sessions": len(tree.nodes), **total.public()},
            "by_session": rows,
        }
        seen = await traces(self._bus, tree.nodes)
        return response if seen is None else {**response, "traces": seen}

    async def _row(self, node: Node, tally: Tally) -> dict[str, Any]:
        context = await self._context(node.session_id)
        row = {**node.place(), **tally.public()}
        return row if context is None else {**row, "context": context}

    async def _tally(self, session_id: str) -> Tally:
        """Counts of a whole active path; an entry that cannot be read fails, since a count without it would lie."""
        try:
            entries = await self._sessions.messages(session_id, include_image_data=False)
        except EpochEnded:
            raise
        except BusError as error:
            raise dependency("session::messages", error) from error
        tally = Tally()
        for entry in entries:
            tally.add(_read(entry, session_id))
        return tally


def _read(entry: Any, session_id: str) -> AgentMessage:
    fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    try:
        return _message.validate_python(fields.get("message"))
    except ValidationError as error:
        place = f"entry {fields.get('entry_id')!r} of session {session_id} cannot be read: {describe(error)}"
        raise dependency("session::messages", BusError("invalid_entry", place)) from error
