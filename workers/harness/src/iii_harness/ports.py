"""What the loop needs from the parts beside it, as small protocols (design: pure core in a durable shell).

The surface (prompt, tools, policy, notices) and the delivery (queue, events) are built apart from the loop; the loop
knows them by these names alone, so its tests give small ones of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from iii_harness.record import Contract, TurnRecord
from iii_kit.bus import Json

Message = dict[str, Any]
"""A message of a transcript, as JSON."""

Block = dict[str, Any]
"""A content block, as JSON."""


class Item(msgspec.Struct, frozen=True):
    """One entry of the active path: a message, or a custom entry."""

    entry_id: str
    message: Message | None = None
    custom_type: str | None = None
    data: Json = None
    origin: Json = None


class Notice(msgspec.Struct, frozen=True):
    """Something the harness tells the model in one step (harness-agents 3.10)."""

    kind: str
    text: str


class Presented(msgspec.Struct, frozen=True):
    """A discovery result as the model sees it (9A.4); `content` None leaves the result as it is."""

    content: list[Block] | None
    ledger: dict[str, Contract]


class Gate(Protocol):
    """The function policy of one step, walls included: pure, compiled once per policy."""

    def denial(self, function_id: str, arguments: Json) -> str | None:
        """Why this call is refused (the text of the result), or None."""
        ...

    def present(
        self, call_id: str, function_id: str, arguments: Json, value: Json, ledger: dict[str, Contract]
    ) -> Presented | None:
        """The model's view of a discovery result; None for every other function."""
        ...

    def showing(self, messages: Sequence[Message]) -> Gate:
        """The same policy for a model that has just these messages before it."""
        ...


class Surface(msgspec.Struct, frozen=True):
    """What one step offers the model, beside the messages."""

    gate: Gate
    tools: list[dict[str, Any]]
    system_prompt: str | None = None
    system_sections: list[dict[str, Any]] | None = None
    cache_intent: dict[str, Any] | None = None
    sections_fallback: str | None = None
    runtime_context: str | None = None
    """The text to freeze as `runtime_context` entry, on the first step that finds none on the path."""
    notices: tuple[Notice, ...] = ()
    """What is new to tell, in order; the loop drops what is already persisted for this step."""
    acknowledged: list[str] | None = None
    """The digests to store as `functions_acknowledged`; None leaves them."""


class Surfaces(Protocol):
    """Maker of the surface of a step: harness-agents 2-4, loop 9A, 14.1."""

    def basis(self) -> tuple[object, ...]:
        """What a surface is made of beside record and custom entries; while it is equal, so is the surface."""
        ...

    async def of_step(self, record: TurnRecord, path: Sequence[Item]) -> Surface:
        """The surface of `record.step`, given the active path as loaded for it."""
        ...

    def gate(self, record: TurnRecord) -> Gate:
        """The policy alone, for a step that goes on after its generation."""
        ...


class Parked(Protocol):
    """A message waiting in the queue of a session."""

    @property
    def visible(self) -> bool:
        """True when a model will read it."""
        ...


class Delivery(Protocol):
    """Parked messages, as the loop meets them (10.4). The session's lock is held at every call."""

    async def parked(self, session_id: str) -> Sequence[Parked]:
        """The rows that wait, in order; cheap when there are none."""
        ...

    async def drain(self, record: TurnRecord) -> TurnRecord:
        """Append the parked rows and delete them; returns the record with the filesystem root that they name."""
        ...

    async def show_parked(self, record: TurnRecord) -> None:
        """Append the parked rows and keep them: the first drain of a finalisation."""
        ...

    async def after_end(self, record: TurnRecord) -> None:
        """The drain after the terminal write: deliver what is parked; unless cancelled, seed the turn it asks for."""
        ...


class TurnEvents(Protocol):
    """The events of a turn (20), sent and forgotten."""

    async def turn_started(self, record: TurnRecord) -> None:
        """`harness::turn-started`."""
        ...

    async def turn_completed(self, record: TurnRecord, reason: str | None) -> None:
        """`harness::turn-completed` of a terminal record; same content each time."""
        ...


class Limits(Protocol):
    """The configured values that the loop reads, each read anew (19)."""

    @property
    def session_timeout_ms(self) -> int:
        """Wait for `session::*` and `state::*`."""
        ...

    @property
    def context_timeout_ms(self) -> int:
        """Wait for `context::*`."""
        ...

    @property
    def router_timeout_ms(self) -> int:
        """Wait for a generation."""
        ...

    @property
    def dispatch_timeout_ms(self) -> int:
        """Wait for a called function."""
        ...

    @property
    def stream_coalesce_ms(self) -> int:
        """Least time between two stored partials."""
        ...

    @property
    def max_result_bytes(self) -> int:
        """Size over which a result is omitted; 0 is off."""
        ...
