"""What the core is told, and what it answers (design: `decide(record, view, event, facts) -> Decision`).

Closed sets: every event, write and next is handled by name, with `assert_never` where they are taken apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from iii_harness.decide.context_snapshot import Context
from iii_harness.decide.failure import Failure
from iii_harness.decide.plan import PlannedCall
from iii_harness.decide.results import Result
from iii_harness.decide.window import Move
from iii_harness.ports import Gate, Message, Notice, Presented
from iii_harness.record import TurnRecord


class Delivered(msgspec.Struct, frozen=True):
    """The queue delivered one step."""

    turn_id: str
    step: int


class Drained(msgspec.Struct, frozen=True):
    """Parked messages are in the transcript, where they may be."""


class Ready(msgspec.Struct, frozen=True):
    """The window is built: `sendable` when the request has a message; the rest is new to write before it goes out."""

    sendable: bool
    runtime_context: str | None = None
    notices: tuple[tuple[str, Notice], ...] = ()
    move: Move | None = None
    acknowledged: list[str] | None = None
    at_ms: int = 0
    """The time of the notices, as the request has it: what is persisted is what was sent."""
    compaction: dict[str, Any] | None = None
    """The record of a compaction that made the request fit (12.4)."""


class Unfit(msgspec.Struct, frozen=True):
    """The request cannot be made; a compaction that did not suffice is kept all the same."""

    failure: Failure
    compaction: dict[str, Any] | None = None


class Generated(msgspec.Struct, frozen=True):
    """The generation has ended: `ok`, or with the router's `error`."""

    message: Message
    ok: bool
    error: dict[str, Any] | None = None


class Reloaded(msgspec.Struct, frozen=True):
    """The reply of a step that runs again is read back from the transcript."""

    message: Message


class Returned(msgspec.Struct, frozen=True):
    """The invoked call gave a result."""

    call: PlannedCall
    result: Result
    presented: Presented | None = None
    behind: Sequence[PlannedCall] | None = None
    """The calls of the reply that come after this one, where they are known already."""


class Cut(msgspec.Struct, frozen=True):
    """A stop ended the wait for the invoked call."""

    call: PlannedCall


Event: TypeAlias = Delivered | Drained | Ready | Unfit | Generated | Reloaded | Returned | Cut


class Append(msgspec.Struct, frozen=True):
    """Append one entry: a message, or custom data."""

    entry_id: str
    message: Message | None = None
    custom_type: str = ""
    data: Any = None


class Rewrite(msgspec.Struct, frozen=True):
    """Give the step's reply its content and its final state."""

    entry_id: str
    message: Message


class Save(msgspec.Struct, frozen=True):
    """Write the turn record."""

    record: TurnRecord


class Enqueue(msgspec.Struct, frozen=True):
    """Enqueue the record's current step."""

    record: TurnRecord


class Project(msgspec.Struct, frozen=True):
    """Set the session's status."""

    status: str
    reason: str | None = None


class Snapshot(msgspec.Struct, frozen=True):
    """Keep the context snapshot of the session's last request; nothing depends on it."""

    value: dict[str, Any]


Write: TypeAlias = Append | Rewrite | Save | Enqueue | Project | Snapshot


class Drain(msgspec.Struct, frozen=True):
    """Bring parked messages into the transcript; then `Drained`."""


class Prepare(msgspec.Struct, frozen=True):
    """Load the path, build window and surface; then `Ready` or `Unfit`."""


class Stream(msgspec.Struct, frozen=True):
    """Ask the model; then `Generated`."""


class Reload(msgspec.Struct, frozen=True):
    """Read the step's reply back; then `Reloaded`."""


class Invoke(msgspec.Struct, frozen=True):
    """Invoke a call whose `triggered` is durable; then `Returned` or `Cut`."""

    call: PlannedCall
    behind: Sequence[PlannedCall] = ()
    """The calls of the reply that come after this one."""


class Park(msgspec.Struct, frozen=True):
    """This delivery is done and the turn lives: another step is enqueued, or the delivery was dropped (`skipped`)."""

    skipped: bool = False


class End(msgspec.Struct, frozen=True):
    """The turn is over: tell it, deliver what is parked."""

    reason: str | None = None


Next: TypeAlias = Drain | Prepare | Stream | Reload | Invoke | Park | End


class View(msgspec.Struct, frozen=True):
    """What the transcript tells, beside the record: the step's reply, the leaf it saw, entries known to exist."""

    message: Message | None = None
    leaf: str | None = None
    logged: frozenset[str] = frozenset()
    context: Context | None = None
    """The snapshot of the request that is out, where a context manager assembled it."""


class Facts(msgspec.Struct, frozen=True):
    """What was looked at outside record and transcript."""

    now_ms: int
    stopped: bool = False
    steered: bool = False
    scheduled: bool = True
    max_result_bytes: int = 0
    gate: Gate | None = None


class Decision(msgspec.Struct, frozen=True):
    """The record as it is now, what to write in this order, and what to do then."""

    record: TurnRecord | None
    writes: list[Write] = msgspec.field(default_factory=list[Write])
    next: Next = msgspec.field(default_factory=Park)
