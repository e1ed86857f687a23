"""Trigger types that the harness emits (harness-loop 20). Delivery is at least once and unordered."""

from typing import Literal

from pydantic import Field

from iii_contracts.harness.context import ContextSnapshotV1
from iii_contracts.model import I64, U32, Closed, Json, Wire
from iii_contracts.spec import TriggerSpec


class ReadyConfig(Closed):
    """No settings."""


class ReadyEvent(Wire):
    """The worker works."""

    status: Literal["ready"] = Field(description="Always `ready`.")
    timestamp: I64 = Field(description="When it became ready.")


class TurnFilter(Closed):
    """Which sessions to hear of; both given, both must match."""

    session_id: str | None = Field(default=None, description="Only this session.")
    parent_session_id: str | None = Field(default=None, description="Only children of this session.")


class ParentRef(Wire):
    """The call that a child session belongs to."""

    session_id: str = Field(description="Session of the caller.")
    turn_id: str = Field(description="Turn of the caller.")
    function_call_id: str = Field(description="The call.")


class TurnStarted(Wire):
    """A turn began; may be told again when its first step is delivered again."""

    session_id: str = Field(description="Session of the turn.")
    turn_id: str = Field(description="The turn.")
    timestamp: I64 = Field(description="When it was told.")
    depth: U32 = Field(description="Nesting below the top-level session.")
    message_preview: str | None = Field(default=None, description="Start of the message that it answers.")
    parent: ParentRef | None = Field(default=None, description="Call that it belongs to.")
    parent_session_id: str | None = Field(default=None, description="Session it is shown under.")


class TurnCompleted(Wire):
    """A turn is over and its end is durable."""

    session_id: str = Field(description="Session of the turn.")
    turn_id: str = Field(description="The turn.")
    status: Literal["completed", "cancelled", "failed"] = Field(description="How it ended.")
    terminal: bool = Field(description="False when a later turn is already arranged for and carries the outcome.")
    timestamp: I64 = Field(description="When it ended.")
    result: Json = Field(default=None, description="What it delivered.")
    result_error: str | None = Field(default=None, description="Why there is no result.")
    reason: str | None = Field(default=None, description="Why it failed or was cancelled.")
    parent: ParentRef | None = Field(default=None, description="Call that it belongs to.")
    parent_session_id: str | None = Field(default=None, description="Session it is shown under.")
    context: ContextSnapshotV1 | None = Field(default=None, description="What its last request was made of.")


class MessageQueued(Wire):
    """A message waits for a running turn, or a waiting one was changed; harness::status has its text."""

    session_id: str = Field(description="Session it waits for.")
    entry_id: str = Field(description="Transcript entry it will become.")
    queued_at: I64 = Field(description="When it arrived.")
    timestamp: I64 = Field(description="When it was told.")


READY = TriggerSpec(
    "harness::ready", "Fires once the harness works; a later binding is told at once.", ReadyConfig, ReadyEvent
)
TURN_STARTED = TriggerSpec("harness::turn-started", "Fires when a turn begins.", TurnFilter, TurnStarted)
TURN_COMPLETED = TriggerSpec(
    "harness::turn-completed", "Fires when a turn has ended and its end is durable.", TurnFilter, TurnCompleted
)
MESSAGE_QUEUED = TriggerSpec(
    "harness::message-queued",
    "Fires when a message waits for a running turn, or was changed there.",
    TurnFilter,
    MessageQueued,
)

TRIGGERS = (READY, TURN_STARTED, TURN_COMPLETED, MESSAGE_QUEUED)
