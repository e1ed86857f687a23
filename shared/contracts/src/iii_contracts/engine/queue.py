"""The queue provider (siblings 9, engine spec 6.2, 14): definitions and the enqueue function behind the action."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from iii_contracts.model import U32, U64, Closed, Json, Wire
from iii_contracts.spec import FunctionSpec, TriggerSpec

INVALID = "deserialization_error"


class QueueConfig(Closed):
    """How a queue delivers."""

    type: Literal["standard", "fifo"] = Field(
        default="standard", description="`fifo`: one job of a group at a time, in order. `standard`: no order."
    )
    message_group_field: str | None = Field(
        default=None, description="fifo, required: the top-level field of the data whose value is the group."
    )
    concurrency: int = Field(
        default=10, ge=1, le=2**32 - 1, description="Jobs in flight; for fifo the number of groups in flight."
    )
    max_retries: U32 = Field(default=3, description="Deliveries in total before a job is a dead letter; 0 counts as 1.")
    backoff_ms: U64 = Field(default=1000, description="Delay before the second delivery; it doubles with every next.")
    poll_interval_ms: U64 = Field(
        default=100, description="First delay of a job whose function is not registered; it doubles up to a minute."
    )
    timeout_ms: int = Field(
        default=1_800_000, ge=1, le=2**63 - 1, description="What one delivery may take; then it has failed."
    )
    redeliver_on_engine_restart: bool = Field(
        default=False, description="Run a job again that was in flight at a stop. This provider always does."
    )
    max_priority: U32 | None = Field(default=None, description="Accepted; this provider knows no priorities.")
    priority_field: str | None = Field(default=None, description="Accepted; this provider knows no priorities.")

    @model_validator(mode="after")
    def _fifo_names_its_group(self) -> QueueConfig:
        if self.type == "fifo" and not self.message_group_field:
            raise ValueError("a fifo queue requires `message_group_field`")
        return self


class DefineRequest(Wire):
    """A queue and how it delivers."""

    queue: str = Field(min_length=1, description="Name of the queue.")
    config: QueueConfig = Field(description="How it delivers.")


class DefineResponse(Wire):
    """What the definition changed."""

    queue: str = Field(description="Name of the queue.")
    changed: bool = Field(description="False when the queue was defined like this already.")


class EnqueueRequest(Wire):
    """A job, as the engine hands it over for an enqueue action."""

    queue: str = Field(description="Name of the queue.")
    function_id: str = Field(description="The function that the job calls.")
    data: Json = Field(description="What it is called with.")
    messageReceiptId: str = Field(description="Id of the job; the same one is accepted once.")
    traceparent: str | None = Field(default=None, description="Trace context of the caller.")
    baggage: str | None = Field(default=None, description="Baggage of the caller.")
    namespace: str | None = Field(default=None, description="Where the function lives when it is not the default.")


class EnqueueResponse(Wire):
    """The receipt."""

    messageReceiptId: str = Field(description="Id of the job.")


DEFINE = FunctionSpec(
    "queue::define",
    "Define a queue, or define it anew: waiting jobs are kept and the new settings hold at once.",
    DefineRequest,
    DefineResponse,
    INVALID,
)
ENQUEUE = FunctionSpec(
    "engine::queue::enqueue",
    "Take a job: the provider side of the enqueue action. The job is on disk before the answer.",
    EnqueueRequest,
    EnqueueResponse,
    INVALID,
    metadata={"internal": True},
    errors=("queue_not_found", "message_group_missing"),
)

FUNCTIONS = (DEFINE, ENQUEUE)
TRIGGERS: tuple[TriggerSpec, ...] = ()
