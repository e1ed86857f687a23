"""What an evaluator is given and answers, and the two that eval brings along (eval 6.5, 9)."""

from typing import Literal, TypeAlias

from pydantic import Field

from iii_contracts.eval import categories
from iii_contracts.eval.request import NO_ARGUMENTS
from iii_contracts.model import F64, Closed, Json, Wire
from iii_contracts.session_metrics import SessionMetricsResponseV1
from iii_contracts.spec import FunctionSpec

Role: TypeAlias = Literal["control", "treatment"]
"""The two variants of an experiment."""


class EvaluatorInputV1(Wire):
    """The outcome of one run."""

    evaluation_id: str = Field(description="The experiment.")
    run_id: str = Field(description="The run.")
    role: Role = Field(description="The variant that it ran.")
    session_id: str = Field(description="Session of the run.")
    output: Json = Field(description="What it delivered.")
    metrics: SessionMetricsResponseV1 = Field(description="What it used.")
    arguments: Json = Field(default=NO_ARGUMENTS, description="Arguments of the evaluator, as the experiment has them.")


class EvaluatorResponseV1(Closed):
    """The verdict on one run."""

    passed: bool = Field(description="The run did what was wanted.")
    score: F64 | None = Field(default=None, description="How well, from 0 to 1.")
    reason: str | None = Field(default=None, description="Why.")
    details: Json = Field(default=None, description="Anything more.")


EXACT = FunctionSpec(
    "eval::assert::exact",
    "Decide whether a run delivered exactly `arguments.expected`: the same JSON, types included, in any key order.",
    EvaluatorInputV1,
    EvaluatorResponseV1,
    categories.INVALID_REQUEST,
)

NORMALIZED_TEXT = FunctionSpec(
    "eval::assert::normalized_text",
    "Decide whether a run delivered the text `arguments.expected`, whatever its case, its white space and the ASCII "
    "punctuation around it.",
    EvaluatorInputV1,
    EvaluatorResponseV1,
    categories.INVALID_REQUEST,
)

FUNCTIONS = (EXACT, NORMALIZED_TEXT)
