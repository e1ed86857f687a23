"""The functions by which eval keeps experiments going, and those of its page (eval 3.8 - 3.11)."""

from typing import Final

from pydantic import Field

from iii_contracts.eval import categories
from iii_contracts.eval.report import EvalStatus
from iii_contracts.model import I64, U64, Closed, Wire
from iii_contracts.spec import FunctionSpec

HIDDEN: Final = {"internal": True, "trace_hidden": True}
"""Metadata of functions that neither discovery nor viewers of traces show."""


class EvalStepRequestV1(Wire):
    """One delivery of one step."""

    evaluation_id: str = Field(description="The experiment.")
    step: U64 = Field(description="The step; any other than the experiment's own is skipped.")


class EvalStepResponseV1(Closed):
    """What became of one delivery."""

    skipped: bool = Field(description="The delivery was of another step, or the experiment is over or unknown.")
    status: EvalStatus = Field(description="Status of the experiment.")


class TurnCompletedNoteV1(Wire):
    """What eval reads of the end of a turn."""

    session_id: str = Field(default="", description="Session of the turn.")
    terminal: bool = Field(default=False, description="No later message is arranged for.")


class WokenV1(Closed):
    """Whether an experiment goes on because of it."""

    woke: bool = Field(description="A step was enqueued.")


class EvalSweepRequestV1(Wire):
    """A tick of the timer; nothing of it is read."""

    scheduled_at: I64 | None = Field(default=None, description="When it was due.")
    scheduled_time: str | None = Field(default=None, description="The same as text.")


class EvalSweepResponseV1(Closed):
    """What a sweep did."""

    swept: U64 = Field(description="Experiments whose step was enqueued again.")


class UiContentRequestV1(Wire):
    """Which file."""

    path: str = Field(description="Path of the file.")


class UiContentResponseV1(Wire):
    """A file of the page."""

    content: str = Field(description="The text of the file.")
    content_type: str = Field(description="Its media type.")


STEP = FunctionSpec(
    "eval::step",
    "Do the next step of an experiment. Only the queue eval-run calls this; a stale or repeated delivery is skipped.",
    EvalStepRequestV1,
    EvalStepResponseV1,
    categories.INVALID_REQUEST,
    HIDDEN,
    (categories.DEPENDENCY, categories.STATE, categories.SERIALIZATION),
)

ON_TURN_COMPLETED = FunctionSpec(
    "eval::on-turn-completed",
    "Let an experiment go on when the turn of one of its runs is over.",
    TurnCompletedNoteV1,
    WokenV1,
    categories.INVALID_REQUEST,
    HIDDEN,
    (categories.DEPENDENCY, categories.STATE),
)

SWEEP = FunctionSpec(
    "eval::sweep",
    "Enqueue a step of every experiment that has not ended, so that none is forgotten.",
    EvalSweepRequestV1,
    EvalSweepResponseV1,
    categories.INVALID_REQUEST,
    HIDDEN,
    (categories.STATE,),
)

UI_CONTENT = FunctionSpec(
    "eval::ui-content",
    "Give a file of eval's page to the console.",
    UiContentRequestV1,
    UiContentResponseV1,
    categories.INVALID_REQUEST,
    {"internal": True},
)

FUNCTIONS = (STEP, ON_TURN_COMPLETED, SWEEP, UI_CONTENT)
