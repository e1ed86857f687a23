"""What an experiment found: runs, aggregates, their difference, the report (eval 8). All of it is closed."""

from typing import Literal, TypeAlias

from pydantic import Field

from iii_contracts.eval.evaluators import EvaluatorResponseV1, Role
from iii_contracts.eval.request import (
    Dimension,
    EvalLimitsV1,
    EvalModelConfigV1,
    ExecutionOrder,
    NormalizedEvalRequestV1,
)
from iii_contracts.model import F64, I64, U8, U32, U64, Closed, Json
from iii_contracts.session_metrics import SessionMetricsResponseV1

EvalStatus: TypeAlias = Literal["queued", "running", "completed", "failed", "cancelled"]
"""Life of an experiment; the last three are terminal."""

RunStatus: TypeAlias = Literal["pending", "running", "completed", "failed", "cancelled"]
"""Life of one run; the last three are terminal."""

Phase: TypeAlias = Literal["setup", "send", "await", "collect", "evaluate", "limit", "cancel"]
"""Where a run met a failure."""


class EvalFailureV1(Closed):
    """One thing that went wrong in a run."""

    phase: Phase = Field(description="Where.")
    code: str | None = Field(default=None, description="Not used in this version.")
    function_id: str | None = Field(default=None, description="Function that failed or whose answer told of it.")
    message: str = Field(description="What happened.")


class EvalBenchmarkV1(Closed):
    """What one run used; absent counters are unknown."""

    wall_time_ms: U64 = Field(description="From its start to its end as seen.")
    sessions: U64 = Field(description="Sessions of its tree.")
    turns: U64 = Field(description="Generations.")
    function_calls: U64 = Field(description="Calls that models asked for.")
    function_call_errors: U64 = Field(description="Results that are errors.")
    input_tokens: U64 | None = Field(default=None, description="Input tokens without those of the cache.")
    output_tokens: U64 | None = Field(default=None, description="Output tokens.")
    total_tokens: U64 | None = Field(default=None, description="Input and output tokens.")
    cache_read_tokens: U64 | None = Field(default=None, description="Input tokens read from the provider's cache.")
    cache_write_tokens: U64 | None = Field(default=None, description="Input tokens written to it.")
    reasoning_tokens: U64 | None = Field(default=None, description="Output tokens spent on reasoning.")
    cost_usd: F64 | None = Field(default=None, description="Cost in US dollars.")
    trace_count: U64 | None = Field(default=None, description="Traces.")
    span_count: U64 | None = Field(default=None, description="Spans.")
    error_span_count: U64 | None = Field(default=None, description="Spans that failed.")
    trace_duration_ms: U64 | None = Field(default=None, description="From the first span to the last.")


class EvalRunReportV1(Closed):
    """One run, planned or made."""

    run_id: str = Field(description="Id of the run within its experiment.")
    role: Role = Field(description="The variant that it runs.")
    iteration: U32 = Field(description="Number of its pair, from 1.")
    execution_position: U32 = Field(default=0, description="Its place in the plan, from 1.")
    pair_position: U8 = Field(default=0, description="Its place in its pair, 1 or 2.")
    status: RunStatus = Field(description="How far it has come.")
    session_id: str = Field(description="Session of the run.")
    turn_id: str | None = Field(default=None, description="Turn that decides the run.")
    passed: bool | None = Field(default=None, description="The verdict; absent when there is none.")
    started_at: I64 = Field(description="When it began; 0 before that.")
    completed_at: I64 | None = Field(default=None, description="When it ended.")
    output: Json = Field(default=None, description="What it delivered.")
    metrics: SessionMetricsResponseV1 | None = Field(default=None, description="What its tree used, as reported.")
    evaluation: EvaluatorResponseV1 | None = Field(default=None, description="What the evaluator answered.")
    benchmark: EvalBenchmarkV1 | None = Field(default=None, description="What it used.")
    failures: list[EvalFailureV1] = Field(
        default_factory=list[EvalFailureV1], description="What went wrong; absent when nothing did."
    )


class VariantAggregateV1(Closed):
    """The terminal runs of one variant. A median is over the runs that know the value."""

    runs: U32 = Field(description="Terminal runs.")
    evaluated_runs: U32 = Field(description="Those with a verdict.")
    passed: U32 = Field(description="Those that passed.")
    pass_rate: F64 = Field(description="Passed by evaluated runs; 0 without any, which says nothing.")
    benchmarked_runs: U32 = Field(description="Runs whose usage is known.")
    median_score: F64 | None = Field(default=None, description="Median score.")
    median_wall_time_ms: U64 | None = Field(default=None, description="Median time.")
    median_function_calls: U64 | None = Field(default=None, description="Median calls.")
    median_function_call_errors: U64 | None = Field(default=None, description="Median results that are errors.")
    median_input_tokens: U64 | None = Field(default=None, description="Median input tokens.")
    median_output_tokens: U64 | None = Field(default=None, description="Median output tokens.")
    median_total_tokens: U64 | None = Field(default=None, description="Median input and output tokens.")
    median_reasoning_tokens: U64 | None = Field(default=None, description="Median reasoning tokens.")
    median_cost_usd: F64 | None = Field(default=None, description="Median cost.")
    median_trace_count: U64 | None = Field(default=None, description="Median traces.")
    median_span_count: U64 | None = Field(default=None, description="Median spans.")
    median_error_span_count: U64 | None = Field(default=None, description="Median spans that failed.")
    median_trace_duration_ms: U64 | None = Field(default=None, description="Median time from first span to last.")


class AggregateDeltaV1(Closed):
    """Treatment less control; absent where one side does not know."""

    pass_rate: F64 = Field(description="Pass rates.")
    median_score: F64 | None = Field(default=None, description="Median scores.")
    median_wall_time_ms: F64 | None = Field(default=None, description="Median times.")
    median_total_tokens: F64 | None = Field(default=None, description="Median input and output tokens.")
    median_reasoning_tokens: F64 | None = Field(default=None, description="Median reasoning tokens.")
    median_function_calls: F64 | None = Field(default=None, description="Median calls.")
    median_function_call_errors: F64 | None = Field(default=None, description="Median results that are errors.")
    median_cost_usd: F64 | None = Field(default=None, description="Median costs.")
    median_trace_count: F64 | None = Field(default=None, description="Median traces.")
    median_span_count: F64 | None = Field(default=None, description="Median spans.")
    median_error_span_count: F64 | None = Field(default=None, description="Median spans that failed.")
    median_trace_duration_ms: F64 | None = Field(default=None, description="Median times from first span to last.")


class RoleOrderSensitivityV1(Closed):
    """Whether one variant does better in one place of its pairs."""

    first_runs: U32 = Field(description="Runs with a verdict that went first.")
    first_passed: U32 = Field(description="Those of them that passed.")
    second_runs: U32 = Field(description="Runs with a verdict that went second.")
    second_passed: U32 = Field(description="Those of them that passed.")
    differs: bool = Field(description="The two pass rates are known and not equal.")


class OrderSensitivityV1(Closed):
    """Whether one variant or the other does better in one place of its pairs."""

    control: RoleOrderSensitivityV1 = Field(description="For the control.")
    treatment: RoleOrderSensitivityV1 = Field(description="For the treatment.")
    detected: bool = Field(description="For one of them.")


class EvaluatorArtifactV1(Closed):
    """The evaluator of a report."""

    function_id: str = Field(description="Function that decided.")
    arguments_sha256: str = Field(description="Digest of its arguments.")


class VariantArtifactV1(Closed):
    """One variant of a report."""

    label: str | None = Field(default=None, description="Name for people.")
    prompt_sha256: str = Field(description="Digest of the prompt.")
    system_prompt_sha256: str | None = Field(default=None, description="Digest of the system prompt; absent for none.")


class SharedArtifactsV1(Closed):
    """Digests of what both variants had in common."""

    model_sha256: str = Field(description="Digest of the model and its options.")
    function_policy_sha256: str = Field(description="Digest of the function policy.")
    limits_sha256: str = Field(description="Digest of the limits.")
    output_sha256: str = Field(description="Digest of the output contract.")


class EvalProgressV1(Closed):
    """An experiment as far as it has come."""

    effective_execution_order: list[str] = Field(description="The plan, `position:role:iteration` each.")
    control_aggregate: VariantAggregateV1 = Field(description="The control so far.")
    treatment_aggregate: VariantAggregateV1 = Field(description="The treatment so far.")
    delta: AggregateDeltaV1 = Field(description="Treatment less control so far.")
    order_sensitivity: OrderSensitivityV1 = Field(description="Whether the place in a pair mattered so far.")
    runs: list[EvalRunReportV1] = Field(description="Every planned run, in the order of the plan.")


class EvalReportV1(Closed):
    """A finished experiment, kept as it was when it ended."""

    schema_version: str = Field(description="Version of this shape.")
    evaluation_id: str = Field(description="The experiment.")
    source_evaluation_id: str | None = Field(default=None, description="The experiment that it repeats.")
    execution_order_policy: ExecutionOrder = Field(description="The order that was asked for.")
    effective_execution_order: list[str] = Field(description="The plan, `position:role:iteration` each.")
    dimension: Dimension = Field(description="The input that differs.")
    model: EvalModelConfigV1 = Field(description="The model of both variants.")
    limits: EvalLimitsV1 = Field(description="Limits of every run.")
    evaluator: EvaluatorArtifactV1 | None = Field(default=None, description="What decided.")
    control: VariantArtifactV1 = Field(description="The control.")
    treatment: VariantArtifactV1 = Field(description="The treatment.")
    shared_artifacts: SharedArtifactsV1 = Field(description="What both had in common.")
    control_aggregate: VariantAggregateV1 = Field(description="The control in numbers.")
    treatment_aggregate: VariantAggregateV1 = Field(description="The treatment in numbers.")
    delta: AggregateDeltaV1 = Field(description="Treatment less control.")
    order_sensitivity: OrderSensitivityV1 = Field(description="Whether the place in a pair mattered.")
    eligible: bool | None = Field(
        default=None, description="Every treatment run passed, and no fewer than of the control; absent undecided."
    )
    runs: list[EvalRunReportV1] = Field(description="Every planned run, in the order of the plan.")
    created_at: I64 = Field(description="When the experiment was asked for.")
    completed_at: I64 = Field(description="When it ended.")


class EvalResultResponseV1(Closed):
    """Everything about an experiment."""

    status: EvalStatus = Field(description="How far it has come.")
    request: NormalizedEvalRequestV1 = Field(description="What it was asked for, with every default.")
    progress: EvalProgressV1 = Field(description="What its runs show now.")
    report: EvalReportV1 | None = Field(default=None, description="The report; absent before its end.")
