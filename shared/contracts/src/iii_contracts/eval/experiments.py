"""The functions of prompt experiments: start, rerun, look, cancel, delete (eval 3.1 - 3.7)."""

from pydantic import Field

from iii_contracts.eval import categories
from iii_contracts.eval.evaluators import Role
from iii_contracts.eval.report import EvalResultResponseV1, EvalStatus
from iii_contracts.eval.request import Dimension, EvalStartRequestV1
from iii_contracts.model import I64, U32, Closed, Wire
from iii_contracts.spec import FunctionSpec


class EvaluationRequest(Wire):
    """Which experiment."""

    evaluation_id: str = Field(description="The experiment.")


class EvalRerunRequestV1(EvaluationRequest):
    """Which experiment to repeat, and how."""

    reverse_order: bool = Field(default=False, description="The other variant goes first.")


class EvalListRequestV1(Wire):
    """How many experiments to list."""

    limit: U32 | None = Field(default=None, description="At most so many, 1 to 100; 50 when left out.")


class EvalAcceptedV1(Closed):
    """An experiment that was accepted."""

    evaluation_id: str = Field(description="The new experiment.")
    status: EvalStatus = Field(description="Always `queued`.")


class EvalCountersV1(Closed):
    """How many runs there are, and what became of them; one that ended without a verdict neither passed nor failed."""

    total_runs: U32 = Field(description="Planned runs.")
    terminal_runs: U32 = Field(description="Runs that have ended.")
    passed_runs: U32 = Field(description="Runs that passed.")
    failed_runs: U32 = Field(description="Ended runs that did not pass.")


class EvalSummaryV1(EvalCountersV1):
    """One experiment in a list."""

    evaluation_id: str = Field(description="The experiment.")
    status: EvalStatus = Field(description="How far it has come.")
    dimension: Dimension = Field(description="The input that differs.")
    model: str = Field(description="Model id.")
    provider: str | None = Field(default=None, description="Provider of the model.")
    control_label: str | None = Field(default=None, description="Name of the control.")
    treatment_label: str | None = Field(default=None, description="Name of the treatment.")
    eligible: bool | None = Field(default=None, description="What the report says; absent before it, or undecided.")
    created_at: I64 = Field(description="When it was asked for.")
    updated_at: I64 = Field(description="When it last went on.")
    completed_at: I64 | None = Field(default=None, description="When it ended.")
    error: str | None = Field(default=None, description="Not used in this version.")


class EvalListResponseV1(Closed):
    """Experiments, the newest first."""

    evaluations: list[EvalSummaryV1] = Field(description="The experiments.")


class ActiveRunV1(Closed):
    """The run that runs."""

    run_id: str = Field(description="The run.")
    role: Role = Field(description="The variant that it runs.")
    iteration: U32 = Field(description="Number of its pair, from 1.")
    session_id: str = Field(description="Its session.")
    turn_id: str | None = Field(default=None, description="Its turn, once that is known.")
    started_at: I64 = Field(description="When it began.")


class EvalStatusResponseV1(EvalCountersV1):
    """How far an experiment has come."""

    evaluation_id: str = Field(description="The experiment.")
    status: EvalStatus = Field(description="How far it has come.")
    active: ActiveRunV1 | None = Field(default=None, description="The run that runs.")
    created_at: I64 = Field(description="When it was asked for.")
    updated_at: I64 = Field(description="When it last went on.")
    completed_at: I64 | None = Field(default=None, description="When it ended.")
    error: str | None = Field(default=None, description="Not used in this version.")


class EvalCancelResponseV1(Closed):
    """Whether there was something to cancel."""

    cancelled: bool = Field(description="It was running and is cancelled now.")
    status: EvalStatus = Field(description="Its status now.")


class EvalDeleteResponseV1(Closed):
    """Whether there was something to delete."""

    deleted: bool = Field(description="It was there and is gone.")


START = FunctionSpec(
    "eval::start",
    "Start a durable experiment: two variants of one prompt on the same model, run in balanced pairs. Answers at once.",
    EvalStartRequestV1,
    EvalAcceptedV1,
    categories.INVALID_REQUEST,
    errors=(categories.DEPENDENCY, categories.STATE),
)

RERUN = FunctionSpec(
    "eval::rerun",
    "Repeat a finished experiment as it was, or with the other variant first, as a new one.",
    EvalRerunRequestV1,
    EvalAcceptedV1,
    categories.INVALID_REQUEST,
    errors=(categories.NOT_FOUND, categories.CONFLICT, categories.DEPENDENCY, categories.STATE),
)

LIST = FunctionSpec(
    "eval::list",
    "List experiments, the newest first.",
    EvalListRequestV1,
    EvalListResponseV1,
    categories.INVALID_REQUEST,
    errors=(categories.STATE,),
)

STATUS = FunctionSpec(
    "eval::status",
    "Tell how far an experiment has come; null when it is unknown.",
    EvaluationRequest,
    EvalStatusResponseV1 | None,
    categories.INVALID_REQUEST,
    errors=(categories.STATE,),
)

RESULT = FunctionSpec(
    "eval::result",
    "Give the request, every run and the numbers of an experiment, and its report once it ended; null when unknown.",
    EvaluationRequest,
    EvalResultResponseV1 | None,
    categories.INVALID_REQUEST,
    errors=(categories.STATE,),
)

CANCEL = FunctionSpec(
    "eval::cancel",
    "Cancel a running experiment: its running session tree is stopped, finished runs keep their results.",
    EvaluationRequest,
    EvalCancelResponseV1,
    categories.INVALID_REQUEST,
    errors=(categories.NOT_FOUND, categories.DEPENDENCY, categories.STATE),
)

DELETE = FunctionSpec(
    "eval::delete",
    "Delete a finished experiment and its report; sessions of its runs stay.",
    EvaluationRequest,
    EvalDeleteResponseV1,
    categories.INVALID_REQUEST,
    errors=(categories.CONFLICT, categories.STATE),
)

FUNCTIONS = (START, RERUN, LIST, STATUS, RESULT, CANCEL, DELETE)
