"""Messages parked for a running turn: `harness::unqueue`, `harness::edit_queued` (harness-loop 3.7)."""

from pydantic import Field

from iii_contracts.harness import codes
from iii_contracts.harness.send import MessageInput
from iii_contracts.model import Wire
from iii_contracts.spec import FunctionSpec


class UnqueueRequest(Wire):
    """Which parked message."""

    session_id: str = Field(description="Session it waits for.")
    entry_id: str = Field(description="Its entry id, as harness::status and harness::message-queued give it.")


class UnqueueResponse(Wire):
    """Whether it was still there."""

    removed: bool = Field(description="False when it was already delivered or never existed.")


class EditQueuedRequest(Wire):
    """Which parked message, and what it says now."""

    session_id: str = Field(description="Session it waits for.")
    entry_id: str = Field(description="Its entry id, as harness::status and harness::message-queued give it.")
    message: MessageInput = Field(description="What it says now; its place in the queue stays.")


class EditQueuedResponse(Wire):
    """Whether it was still there."""

    updated: bool = Field(description="False when it was already delivered or never existed.")


UNQUEUE = FunctionSpec(
    "harness::unqueue",
    "Take back a message that waits for a running turn's next step.",
    UnqueueRequest,
    UnqueueResponse,
    codes.INVALID_REQUEST,
    codes.INTERNAL_FUNCTION,
    (codes.STATE,),
)

EDIT_QUEUED = FunctionSpec(
    "harness::edit_queued",
    "Change a message that waits for a running turn's next step; its place in the queue stays.",
    EditQueuedRequest,
    EditQueuedResponse,
    codes.INVALID_REQUEST,
    codes.INTERNAL_FUNCTION,
    (codes.INVALID_MESSAGE_ROLE, codes.STATE),
)

FUNCTIONS = (UNQUEUE, EDIT_QUEUED)
