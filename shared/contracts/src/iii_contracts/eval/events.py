"""The trigger type that eval emits (eval 10): once for each experiment, not repeated after a crash."""

from pydantic import Field

from iii_contracts.eval.report import EvalStatus
from iii_contracts.model import I64, Closed, Wire
from iii_contracts.spec import TriggerSpec


class EvalCompletedConfigV1(Closed):
    """Which experiments to hear of."""

    evaluation_id: str | None = Field(default=None, description="Only this one.")


class EvalCompletedV1(Wire):
    """An experiment has ended."""

    evaluation_id: str = Field(description="The experiment.")
    status: EvalStatus = Field(description="How it ended.")
    eligible: bool | None = Field(default=None, description="What the report says; absent when it does not decide.")
    timestamp: I64 = Field(description="When it ended.")


COMPLETED = TriggerSpec(
    "eval::completed",
    "An experiment has ended. What happened is in eval::result.",
    EvalCompletedConfigV1,
    EvalCompletedV1,
)

TRIGGERS = (COMPLETED,)
