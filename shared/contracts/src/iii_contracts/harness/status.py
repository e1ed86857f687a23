"""`harness::status`: the current turn of a session (harness-loop 3.2)."""

from pydantic import Field

from iii_contracts.harness import codes
from iii_contracts.harness.context import ContextSnapshotV1
from iii_contracts.harness.turn import TurnStatus
from iii_contracts.messages import AgentMessage
from iii_contracts.model import I64, U32, U64, Json, Wire
from iii_contracts.spec import FunctionSpec


class StatusRequest(Wire):
    """Which session, and how much of it."""

    session_id: str = Field(description="Session to look at.")
    verbose: bool = Field(default=False, description="Add the whole result, counters, parked messages and context.")


class ChildRef(Wire):
    """A call that runs, or ran, as a session of its own."""

    function_call_id: str = Field(description="The call.")
    session_id: str = Field(description="Session of the child.")
    turn_id: str = Field(description="Turn of the child.")


class ArmedWake(Wire):
    """A binding that will bring a message into the session."""

    subscription_id: str = Field(description="Id of the binding.")
    trigger_type: str | None = Field(default=None, description="What it waits for.")
    config: Json = Field(default=None, description="Its configuration.")
    created_at: I64 = Field(description="When it was armed.")
    expires_at: I64 | None = Field(default=None, description="When it lapses.")


class QueuedMessage(Wire):
    """A message that waits for the next step."""

    id: str = Field(description="Id of the row.")
    session_id: str = Field(description="Session it is for.")
    entry_id: str = Field(description="Transcript entry it will become; unqueue and edit_queued take this id.")
    message: AgentMessage = Field(description="The message.")
    origin: Json = Field(default=None, description="Where it came from.")
    queued_at: I64 = Field(description="When it arrived.")


class StatusReport(Wire):
    """The turn of a session."""

    session_id: str = Field(description="The session.")
    turn_id: str = Field(description="Its current or last turn.")
    status: TurnStatus = Field(description="Status of that turn.")
    step: U64 = Field(description="Step the turn is at.")
    turn_count: U32 = Field(description="Generations the turn has used.")
    children: list[ChildRef] = Field(description="Calls that became sessions, finished or not.")
    expects_wake: bool = Field(description="A later message is already arranged for.")
    max_turns: U32 = Field(description="Generations the turn may use.")
    pending_function_calls: list[str] = Field(description="Ids of the calls that have started or wait.")
    result: Json = Field(default=None, description="What the turn delivered; cut unless `verbose`.")
    result_error: str | None = Field(default=None, description="Why there is no result.")
    stop_reason: str | None = Field(default=None, description="`max_turns` when the limit ended the turn.")
    validation_retries: U32 | None = Field(default=None, description="Retries of an invalid result so far.")
    max_validation_retries: U32 | None = Field(default=None, description="Such retries allowed.")
    transient_resumes: U32 | None = Field(default=None, description="Recoveries from a failed generation so far.")
    max_transient_resumes: U32 | None = Field(default=None, description="Such recoveries allowed.")
    partial_result_available: bool | None = Field(default=None, description="A failed turn kept part of its answer.")
    depth: U32 | None = Field(default=None, description="Nesting below the top-level session.")
    armed_wakes: list[ArmedWake] | None = Field(default=None, description="Bindings that will wake the session.")
    queued: list[QueuedMessage] | None = Field(default=None, description="Messages that wait, in order of arrival.")
    context: ContextSnapshotV1 | None = Field(default=None, description="What the last request was made of.")


STATUS = FunctionSpec(
    "harness::status",
    "Read the current or last turn of a session: status, step, result, calls in flight. null when it never had a turn.",
    StatusRequest,
    StatusReport | None,
    codes.INVALID_REQUEST,
    errors=(codes.STATE,),
)

FUNCTIONS = (STATUS,)
