"""Steps and stops of a turn: `harness::turn`, `harness::stop` (harness-loop 3.3, 3.4)."""

from typing import Literal, TypeAlias

from pydantic import Field

from iii_contracts.harness import codes
from iii_contracts.model import U32, U64, Wire
from iii_contracts.spec import FunctionSpec

TurnStatus: TypeAlias = Literal["running", "awaiting_functions", "completed", "cancelled", "failed"]
"""Life of a turn; the last three are terminal."""

TERMINAL: frozenset[str] = frozenset({"completed", "cancelled", "failed"})
"""Statuses that a turn never leaves."""


class TurnRequest(Wire):
    """One delivery of one durable step."""

    session_id: str = Field(description="Session of the turn.")
    turn_id: str = Field(description="Turn that the step belongs to; another turn's delivery is dropped.")
    step: U64 = Field(description="Step to run; anything but the record's own step is dropped.")
    message_preview: str | None = Field(default=None, description="Start of the user's message, for traces.")
    depth: U32 = Field(default=0, description="Nesting below the top-level session.")


class TurnResponse(Wire):
    """What became of one delivery."""

    session_id: str = Field(description="Session of the turn.")
    status: TurnStatus = Field(description="Status of the turn after the step; says nothing when `skipped`.")
    next_step: U64 | None = Field(default=None, description="The step that was enqueued, when the turn goes on.")
    skipped: bool = Field(default=False, description="The delivery was stale, foreign or already executing.")


class StopRequest(Wire):
    """Which turn to stop."""

    session_id: str = Field(description="Session whose turn is to stop.")
    turn_id: str | None = Field(default=None, description="Stop only when this is the session's turn.")


class StopResponse(Wire):
    """Whether there was something to stop."""

    stopping: bool = Field(description="True while the turn runs; false when it is over or is not the named one.")


TURN = FunctionSpec(
    "harness::turn",
    "Run one durable step of a turn. Only the harness-turn queue calls this; a stale or repeated delivery is dropped.",
    TurnRequest,
    TurnResponse,
    codes.INVALID_REQUEST,
    codes.HIDDEN_FUNCTION,
    (codes.STATE, codes.DEPENDENCY, codes.INTERNAL),
)

STOP = FunctionSpec(
    "harness::stop",
    "Ask a session's running turn to stop. The request is durable; the turn ends `cancelled` and keeps what it wrote.",
    StopRequest,
    StopResponse,
    codes.INVALID_REQUEST,
    codes.INTERNAL_FUNCTION,
    (codes.STATE,),
)

FUNCTIONS = (TURN, STOP)
