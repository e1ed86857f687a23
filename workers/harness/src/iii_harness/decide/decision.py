"""What the core is told, and what it answers (design: `decide(record, view, event, facts) -> Decision`).

Closed sets: every event, write and next is handled by name, with `assert_never` where they are taken apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from iii_harness.decide.failure import Failure
from iii_harness.decide.plan import PlannedCall
from iii_harness.decide.results import Result
from iii_harness.decide.window import Move
from iii_harness.ports import Gate, Message, Notice, Presented
from iii_harness.record import TurnRecord


@dataclass(frozen=True, slots=True)
class Delivered:
    """The queue delivered one step."""

    turn_id: str
    step: int


@dataclass(frozen=True, slots=True)
class Drained:
    """Parked messages are in the transcript, where they may be."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The window is built: `sendable` when the request has a message; the rest is new to write before it goes out."""

    sendable: bool
    runtime_context: str | None = None
    notices: tuple[tuple[str, Notice], ...] = ()
    move: Move | None = None
    acknowledged: list[str] | None = None
    at_ms: int = 0
    """The time of the notices, as the request has it: what is persisted is what was sent."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """The request cannot be made."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Generated:
    """The generation has ended: `ok`, or with the router's `error`."""

    message: Message
    ok: bool
    error: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The reply of a step that runs again is read back from the transcript."""

    message: Message


@dataclass(frozen=True, slots=True)
class Returned:
    """The invoked call gave a result."""

    call: PlannedCall
    result: Result
    presented: Presented | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """A stop ended the wait for the invoked call."""

    call: PlannedCall


Event: TypeAlias = Delivered | Drained | Ready | Unfit | Generated | Reloaded | Returned | Cut


@dataclass(frozen=True, slots=True)
class Append:
    """Append one entry: a message, or custom data."""

    entry_id: str
    message: Message | None = None
    custom_type: str = ""
    data: Any = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Give the step's reply its content and its final state."""

    entry_id: str
    message: Message


@dataclass(frozen=True, slots=True)
class Save:
    """Write the turn record."""

    record: TurnRecord


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Enqueue the record's current step."""

    record: TurnRecord


@dataclass(frozen=True, slots=True)
class Project:
    """Set the session's status."""

    status: str
    reason: str | None = None


Write: TypeAlias = Append | Rewrite | Save | Enqueue | Project


@dataclass(frozen=True, slots=True)
class Drain:
    """Bring parked messages into the transcript; then `Drained`."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Load the path, build window and surface; then `Ready` or `Unfit`."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Ask the model; then `Generated`."""


@dataclass(frozen=True, slots=True)
class Reload:
    """Read the step's reply back; then `Reloaded`."""


@dataclass(frozen=True, slots=True)
class Invoke:
    """Invoke a call whose `triggered` is durable; then `Returned` or `Cut`."""

    call: PlannedCall


@dataclass(frozen=True, slots=True)
class Park:
    """This delivery is done and the turn lives: another step is enqueued, or the delivery was dropped (`skipped`)."""

    skipped: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """The turn is over: tell it, deliver what is parked."""

    reason: str | None = None


Next: TypeAlias = Drain | Prepare | Stream | Reload | Invoke | Park | End


@dataclass(frozen=True, slots=True)
class View:
    """What the transcript tells, beside the record: the step's reply, the leaf it saw, entries known to exist."""

    message: Message | None = None
    leaf: str | None = None
    logged: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Facts:
    """What was looked at outside record and transcript."""

    now_ms: int
    stopped: bool = False
    steered: bool = False
    scheduled: bool = True
    max_result_bytes: int = 0
    gate: Gate | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The record as it is now, what to write in this order, and what to do then."""

    record: TurnRecord | None
    writes: list[Write] = field(default_factory=list[Write])
    next: Next = field(default_factory=Park)
