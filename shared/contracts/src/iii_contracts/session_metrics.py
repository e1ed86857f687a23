"""`SessionMetricsResponseV1`: what a tree of sessions used, as both workers know it (harness-loop 15.2, eval 7).

The shapes here are what readers may rely on: counters may be absent, which means the same as null. The harness
promises more (`iii_contracts.harness.metrics`): every counter present, and the parts of a snapshot that are its own.
"""

from pydantic import Field

from iii_contracts.messages import Usage
from iii_contracts.model import F64, I64, U32, U64, Closed, Wire


class SnapshotMessagesV1(Wire):
    """Tokens of the messages by role."""

    user: U64 = Field(description="Tokens of user messages.")
    assistant: U64 = Field(description="Tokens of the model's own messages.")
    function_result: U64 = Field(description="Tokens of results.")
    custom: U64 = Field(description="Tokens of custom messages.")


class SnapshotCategoriesV1(Wire):
    """Tokens of a request by what they are spent on."""

    system_prompt: U64 = Field(description="Tokens of the system prompt without skills.")
    tools: U64 = Field(description="Tokens of the tools.")
    messages: SnapshotMessagesV1 = Field(description="Tokens of the messages.")
    overhead: U64 = Field(description="Tokens set aside for the request around them.")
    hook_guidance: U64 = Field(default=0, description="Tokens added after assembly.")


class ContextSnapshotV1(Wire):
    """What the last request of a session was made of."""

    session_id: str = Field(description="Session of the request.")
    turn_id: str = Field(description="Turn of the request.")
    step: U64 = Field(description="Step of the request.")
    model: str = Field(description="Model that was asked.")
    provider: str | None = Field(default=None, description="Provider that was asked.")
    estimator: str | None = Field(default=None, description="How tokens were counted.")
    usable: U64 = Field(description="Input tokens that the model's window leaves.")
    effective_max_output_tokens: U64 = Field(description="Output ceiling of the request.")
    total: U64 = Field(description="Input tokens: billed ones once known, else counted.")
    free: U64 = Field(description="Usable tokens that are left.")
    categories: SnapshotCategoriesV1 = Field(description="What the tokens are spent on.")
    compacted: bool = Field(description="The request carried a summary of earlier messages.")
    summarized_head_tokens: U64 | None = Field(default=None, description="Tokens that the summary stands for.")
    usage: Usage | None = Field(default=None, description="What the provider reported.")
    session_cost_usd: F64 | None = Field(default=None, description="Cost of the session so far, when known.")
    timestamp: I64 = Field(description="When the snapshot was taken.")


class Counters(Closed):
    """The six counters of generations: null or absent when unknown, which is not zero."""

    input_tokens: U64 | None = Field(default=None, description="Input tokens without those of the cache.")
    output_tokens: U64 | None = Field(default=None, description="Output tokens.")
    cache_read_tokens: U64 | None = Field(default=None, description="Input tokens read from the provider's cache.")
    cache_write_tokens: U64 | None = Field(default=None, description="Input tokens written to it.")
    reasoning_tokens: U64 | None = Field(default=None, description="Output tokens spent on reasoning.")
    cost_usd: F64 | None = Field(default=None, description="Cost in US dollars.")


class SessionUsageTotalsV1(Counters):
    """Usage of a whole tree."""

    sessions: U64 = Field(description="Sessions in the tree.")
    turns: U64 = Field(description="Generations.")
    function_calls: U64 = Field(description="Calls that models asked for.")
    function_call_errors: U64 = Field(description="Results that are errors.")


class SessionUsageV1(Counters):
    """Usage of one session."""

    session_id: str = Field(description="The session.")
    parent_session_id: str | None = Field(default=None, description="Session above it.")
    depth: U32 = Field(description="Levels below the root.")
    turns: U64 = Field(description="Generations.")
    function_calls: U64 = Field(description="Calls that the model asked for.")
    function_call_errors: U64 = Field(description="Results that are errors.")
    context: ContextSnapshotV1 | None = Field(default=None, description="What its last request was made of.")


class SessionTraceUsageV1(Closed):
    """Traces of one session."""

    session_id: str = Field(description="The session.")
    parent_session_id: str | None = Field(default=None, description="Session above it.")
    depth: U32 = Field(description="Levels below the root.")
    trace_count: U64 = Field(description="Traces.")
    span_count: U64 = Field(description="Spans.")
    error_span_count: U64 = Field(description="Spans that failed.")
    duration_ms: U64 = Field(description="From its first span to its last.")


class SessionTraceMetricsV1(Closed):
    """Traces of a whole tree."""

    trace_count: U64 = Field(description="Different traces.")
    span_count: U64 = Field(description="Spans.")
    error_span_count: U64 = Field(description="Spans that failed.")
    duration_ms: U64 = Field(description="From the first span of the tree to the last.")
    by_session: list[SessionTraceUsageV1] = Field(description="The same by session, in the tree's order.")


class SessionMetricsResponseV1(Closed):
    """What a tree of sessions used."""

    root_session_id: str = Field(description="Root of the tree.")
    complete: bool = Field(description="Everything has ended and is counted.")
    totals: SessionUsageTotalsV1 = Field(description="Sums over all generations of the tree.")
    by_session: list[SessionUsageV1] = Field(description="Usage by session, in the tree's order.")
    traces: SessionTraceMetricsV1 | None = Field(default=None, description="Absent when the engine keeps none.")
