"""`eval::compare-sessions`: live objective figures of 2 to 5 root sessions side by side (eval 11)."""

from typing import Any, cast

from pydantic import Field, model_validator

from iii_contracts.eval import categories
from iii_contracts.harness.turn import TurnStatus
from iii_contracts.model import F64, I64, U32, U64, Closed, Json, Wire
from iii_contracts.session_metrics import SessionMetricsResponseV1
from iii_contracts.session_model import SessionStatus
from iii_contracts.spec import FunctionSpec

SCHEMA_VERSION = "1"
"""Version of the response."""

FEWEST, MOST = 2, 5
"""How many sessions one comparison takes."""

CALLER_PREFIX = "_caller_"
"""Top-level keys that an engine adds to a routed call (eval 2.2)."""


class CompareSessionsRequest(Closed):
    """Which sessions, and against which of them."""

    session_ids: list[str] = Field(
        description="Root sessions, 2 to 5, each once; the answer keeps their order.",
        json_schema_extra={"minItems": FEWEST, "maxItems": MOST},
    )
    baseline_session_id: str = Field(description="The one of them that the others are measured against.")

    @model_validator(mode="before")
    @classmethod
    def _without_caller(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = cast("dict[str, Any]", data)
        return {key: value for key, value in given.items() if not key.startswith(CALLER_PREFIX)}


class SessionMetaProjectionV1(Wire):
    """What a comparison tells of the session itself."""

    session_id: str = Field(description="The session.")
    title: str = Field(default="", description="Its title.")
    description: str = Field(default="", description="Its longer text.")
    status: SessionStatus = Field(description="Where it is in its life.")
    status_reason: str | None = Field(default=None, description="Why.")
    metadata: Json = Field(default=None, description="Data of the application.")
    forked_from: str | None = Field(default=None, description="The session it was forked from.")
    draft: str | None = Field(default=None, description="Text parked in its composer.")
    created_at: I64 = Field(default=0, description="When it was created.")
    updated_at: I64 = Field(default=0, description="When it last changed.")
    message_count: U64 = Field(default=0, description="Messages that it stores.")


class SessionLifecycleV1(Wire):
    """How far a session has come; without a turn the fields of the turn are absent."""

    session_status: SessionStatus = Field(description="Status of the session.")
    turn_id: str | None = Field(default=None, description="Its current or last turn.")
    turn_status: TurnStatus | None = Field(default=None, description="Status of that turn.")
    terminal: bool | None = Field(default=None, description="That turn is over and no message is arranged for.")
    expects_wake: bool | None = Field(default=None, description="A later message is already arranged for.")
    result_error: str | None = Field(default=None, description="Why the turn has no result.")
    complete: bool | None = Field(default=None, description="Its metrics are final; absent when they are not known.")
    partial: bool = Field(description="Its figures may still change, or are not known.")


class ObjectiveSummaryV1(Wire):
    """The figures of one session tree. Every one is always there; null means unknown and is never zero."""

    total_tokens: U64 | None = Field(default=None, description="Input and output tokens.")
    input_tokens: U64 | None = Field(default=None, description="Input tokens without those of the cache.")
    output_tokens: U64 | None = Field(default=None, description="Output tokens.")
    cache_read_tokens: U64 | None = Field(default=None, description="Input tokens read from the provider's cache.")
    cache_write_tokens: U64 | None = Field(default=None, description="Input tokens written to it.")
    reasoning_tokens: U64 | None = Field(default=None, description="Output tokens spent on reasoning.")
    subject_cost_usd: F64 | None = Field(default=None, description="Cost in US dollars.")
    generations: U64 | None = Field(default=None, description="Generations.")
    tokens_per_generation: F64 | None = Field(default=None, description="Input and output tokens by generation.")
    cost_per_generation_usd: F64 | None = Field(default=None, description="Cost by generation.")
    function_calls: U64 | None = Field(default=None, description="Calls that models asked for.")
    function_call_errors: U64 | None = Field(default=None, description="Results that are errors.")
    function_error_rate: F64 | None = Field(default=None, description="Errors by call; null without calls.")
    trace_count: U64 | None = Field(default=None, description="Traces.")
    span_count: U64 | None = Field(default=None, description="Spans.")
    error_span_count: U64 | None = Field(default=None, description="Spans that failed.")
    trace_duration_ms: U64 | None = Field(default=None, description="From the first span to the last.")
    sessions: U64 | None = Field(default=None, description="Sessions of the tree.")
    descendants: U64 | None = Field(default=None, description="Sessions below the root.")
    max_depth: U32 | None = Field(default=None, description="Levels below the root.")
    compacted_sessions: U64 | None = Field(default=None, description="Sessions whose context carries a summary.")
    context_total_tokens: U64 | None = Field(default=None, description="Tokens of the root's last request.")
    context_usable_tokens: U64 | None = Field(default=None, description="Tokens that its model's window leaves.")
    context_free_tokens: U64 | None = Field(default=None, description="Usable tokens that were left.")
    context_occupancy: F64 | None = Field(default=None, description="Total by usable tokens; may exceed 1.")


class MetricDeltaV1(Wire):
    """One figure against that of the baseline. Both fields are always there; null means unknown."""

    absolute: F64 | None = Field(default=None, description="The figure less that of the baseline.")
    percent: F64 | None = Field(default=None, description="The same by the baseline's figure, in percent.")


class SessionComparisonItemV1(Wire):
    """One session of a comparison."""

    session: SessionMetaProjectionV1 = Field(description="The session.")
    lifecycle: SessionLifecycleV1 = Field(description="How far it has come.")
    metrics: SessionMetricsResponseV1 | None = Field(default=None, description="Its usage, absent when not known.")
    summary: ObjectiveSummaryV1 | None = Field(default=None, description="Its figures, absent without metrics.")
    deltas: dict[str, MetricDeltaV1] = Field(default={}, description="Each figure against the baseline's, by name.")
    errors: list[str] = Field(default_factory=list[str], description="What could not be read; absent when nothing.")


class CompareSessionsResponse(Wire):
    """The sessions side by side."""

    schema_version: str = Field(description="Version of this shape.")
    captured_at: I64 = Field(description="When the figures were read.")
    baseline_session_id: str = Field(description="The session that the others are measured against.")
    sessions: list[SessionComparisonItemV1] = Field(description="The sessions, in the order of the request.")


COMPARE_SESSIONS = FunctionSpec(
    "eval::compare-sessions",
    "Put live objective figures of 2 to 5 root sessions side by side, each with its distance from a baseline. "
    "Nothing is stored, scored or ranked; sessions that still run are compared as they are.",
    CompareSessionsRequest,
    CompareSessionsResponse,
    categories.INVALID_REQUEST,
    errors=(categories.SESSION_NOT_FOUND, categories.DEPENDENCY, categories.SERIALIZATION),
)

FUNCTIONS = (COMPARE_SESSIONS,)
