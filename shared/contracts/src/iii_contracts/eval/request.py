"""What an experiment is asked for: model, variants, evaluator, limits (eval 3.1). Its parts are closed."""

from typing import Any, Final, Literal, TypeAlias

from pydantic import Field

from iii_contracts.harness.send import OutputContract, SystemPromptStrategy
from iii_contracts.messages import ThinkingLevel
from iii_contracts.model import F64, U32, U64, Closed, Json, Wire
from iii_contracts.policy import FunctionPolicy

Dimension: TypeAlias = Literal["prompt", "system_prompt"]
"""The one input in which the two variants differ."""

ExecutionOrder: TypeAlias = Literal["balanced_control_first", "balanced_treatment_first"]
"""Which variant goes first in the first pair; pairs take turns."""

Mode: TypeAlias = Literal["ask", "agent"]

NO_ARGUMENTS: Final[dict[str, Any]] = {}
"""Arguments of an evaluator that is given none."""

DEFAULT_EXECUTION: Final[dict[str, Any]] = {
    "invocation_timeout_seconds": 120,
    "scenario_timeout_seconds": 600,
    "max_turns": 1000,
    "max_output_tokens_per_call": 8192,
}
"""Limits of a run that nobody set."""

DEFAULT_LIMITS: Final[dict[str, Any]] = {"execution": DEFAULT_EXECUTION, "evaluation": {}}


class EvalModelConfigV1(Closed):
    """The model that both variants use."""

    model: str = Field(description="Model id.")
    provider: str | None = Field(default=None, description="Provider that serves it.")
    system_prompt_strategy: SystemPromptStrategy = Field(
        default="enrich", description="What a variant's system prompt does to the built-in one."
    )
    mode: Mode | None = Field(default=None, description="Mode of the turn, for harnesses that know one.")
    thinking_level: ThinkingLevel | None = Field(default=None, description="How much the model reasons.")
    provider_options: dict[str, Json] | None = Field(default=None, description="Options by provider id.")


class EvalVariantV1(Closed):
    """One of the two variants."""

    label: str | None = Field(default=None, description="Name for people.")
    prompt: str = Field(description="What the agent is told.")
    system_prompt: str | None = Field(
        default=None, description="System prompt. Null sends none; an empty text leaves the default to the harness."
    )


class EvaluatorSpecV1(Closed):
    """What decides whether a run passed."""

    function_id: str = Field(description="Function that is given the outcome of each run.")
    arguments: Json = Field(default=NO_ARGUMENTS, description="Handed to it unchanged.")


class ExecutionLimitsV1(Closed):
    """Limits that hold while a run runs."""

    invocation_timeout_seconds: U64 = Field(default=120, description="What each call for a run may take.")
    scenario_timeout_seconds: U64 = Field(default=600, description="What a whole run may take.")
    max_turns: U32 = Field(default=1000, description="Generations of a turn.")
    max_output_tokens_per_call: U64 = Field(default=8192, description="Output ceiling of a generation.")
    max_total_tokens: U64 | None = Field(default=None, description="Input and output tokens of a run's whole tree.")
    max_cost_usd: F64 | None = Field(default=None, description="Cost of a run's whole tree.")


class EvaluationLimitsV1(Closed):
    """Limits that a finished run is held against; zero tolerates none."""

    max_function_call_errors: U64 | None = Field(default=None, description="Results that are errors.")
    max_error_spans: U64 | None = Field(default=None, description="Spans that failed.")


class EvalLimitsV1(Closed):
    """Limits of every run; what is left out has its default."""

    execution: ExecutionLimitsV1 = Field(
        default_factory=ExecutionLimitsV1,
        description="Limits while it runs.",
        json_schema_extra={"default": DEFAULT_EXECUTION},
    )
    evaluation: EvaluationLimitsV1 = Field(
        default_factory=EvaluationLimitsV1,
        description="Limits of its outcome.",
        json_schema_extra={"default": {}},
    )


class EvalStartRequestV1(Wire):
    """An experiment: one model, two variants that differ in one input."""

    dimension: Dimension = Field(description="The input that differs.")
    model: EvalModelConfigV1 = Field(description="The model of both variants.")
    control: EvalVariantV1 = Field(description="The variant to measure against.")
    treatment: EvalVariantV1 = Field(description="The variant in question.")
    evaluator: EvaluatorSpecV1 | None = Field(default=None, description="What decides; without it runs are collected.")
    runs: U32 | None = Field(default=None, description="Runs of each variant, 1 to 20; 1 when left out.")
    execution_order: ExecutionOrder | None = Field(default=None, description="`balanced_control_first` by default.")
    limits: EvalLimitsV1 = Field(
        default_factory=EvalLimitsV1,
        description="Limits of every run.",
        json_schema_extra={"default": DEFAULT_LIMITS},
    )
    functions: FunctionPolicy | None = Field(default=None, description="What runs may call; nothing by default.")
    output: OutputContract | None = Field(default=None, description="What runs deliver; text by default.")
    metadata: Json = Field(default=None, description="Kept with the turns of the runs.")


class NormalizedEvalRequestV1(Closed):
    """The request with every default written out, as it is stored."""

    dimension: Dimension = Field(description="The input that differs.")
    model: EvalModelConfigV1 = Field(description="The model of both variants.")
    control: EvalVariantV1 = Field(description="The variant to measure against.")
    treatment: EvalVariantV1 = Field(description="The variant in question.")
    evaluator: EvaluatorSpecV1 | None = Field(default=None, description="What decides whether a run passed.")
    runs: U32 = Field(description="Runs of each variant.")
    execution_order: ExecutionOrder = Field(
        default="balanced_control_first", description="Which variant goes first in the first pair."
    )
    limits: EvalLimitsV1 = Field(description="Limits of every run.")
    functions: FunctionPolicy = Field(description="What runs may call.")
    output: OutputContract = Field(description="What runs deliver.")
    metadata: Json = Field(default=None, description="Kept with the turns of the runs.")
    source_evaluation_id: str | None = Field(default=None, description="The experiment that this one repeats.")
