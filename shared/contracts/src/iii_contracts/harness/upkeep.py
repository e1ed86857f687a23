"""Functions that timers and events call to keep the harness true (harness-loop 3.10-3.12, harness-agents 4.1)."""

from typing import Literal

from pydantic import Field

from iii_contracts.harness import codes
from iii_contracts.model import U64, Json, Wire
from iii_contracts.spec import FunctionSpec


class SweepRequest(Wire):
    """A tick of the timer."""

    scheduled_at: Json = Field(default=None, description="When the tick was due; not used.")


class SweepResponse(Wire):
    """What one sweep did."""

    ok: Literal[True] = Field(description="Always true.")
    resolved: U64 = Field(description="Pending calls that expired.")
    redriven: U64 = Field(description="Turns that were enqueued again.")
    converted: U64 = Field(description="Always 0: stored prompts need no conversion here.")
    prompts_collected: U64 = Field(description="Always 0: stored prompts need no collection here.")


class ConfigChange(Wire):
    """The configuration changed; what is stored is read anew."""

    id: Json = Field(default=None, description="Entry that changed; advisory.")


class FunctionsChange(Wire):
    """Functions came or went; the registry is read anew."""

    event: Json = Field(default=None, description="What happened; advisory.")


class Done(Wire):
    """The event was handled."""

    ok: Literal[True] = Field(description="Always true.")


class SessionDeleted(Wire):
    """A session is gone."""

    session_id: str = Field(description="The deleted session.")


class SessionDeletedResponse(Wire):
    """What was removed with it."""

    ok: Literal[True] = Field(description="Always true.")
    removed: U64 = Field(description="Trigger bindings that were removed.")


SWEEP_PENDING = FunctionSpec(
    "harness::sweep-pending",
    "Timer target: enqueue turns again that lost their next step, and delete expired idempotency rows.",
    SweepRequest,
    SweepResponse,
    codes.INVALID_REQUEST,
    codes.INTERNAL_FUNCTION,
    (codes.STATE,),
)

ON_CONFIG_CHANGE = FunctionSpec(
    "harness::on-config-change",
    "Read the harness configuration anew and use it from the next step on.",
    ConfigChange,
    Done,
    codes.INVALID_REQUEST,
    codes.INTERNAL_FUNCTION,
)

ON_FUNCTIONS_CHANGE = FunctionSpec(
    "harness::on-functions-change",
    "Read the function registry anew after functions came or went.",
    FunctionsChange,
    Done,
    codes.INVALID_REQUEST,
    codes.INTERNAL_FUNCTION,
)

ON_SESSION_DELETED = FunctionSpec(
    "harness::on-session-deleted",
    "Remove everything that the harness keeps of a deleted session.",
    SessionDeleted,
    SessionDeletedResponse,
    codes.INVALID_REQUEST,
    codes.INTERNAL_FUNCTION,
    (codes.STATE,),
)

FUNCTIONS = (SWEEP_PENDING, ON_CONFIG_CHANGE, ON_FUNCTIONS_CHANGE, ON_SESSION_DELETED)
