"""Timed calls (engine spec 15.2): the `cron` trigger."""

from typing import Literal

from pydantic import Field

from iii_contracts.model import Json, Wire
from iii_contracts.spec import FunctionSpec, TriggerSpec


class CronConfig(Wire):
    """When a binding fires. The provider judges the expression, so that its refusal names it."""

    expression: Json = Field(
        default=None,
        description="Six fields in UTC: second minute hour day-of-month month day-of-week (1-7, Sunday = 1), and "
        "optionally a year; or @hourly, @daily, @weekly, @monthly, @yearly.",
        json_schema_extra={"type": "string"},
    )
    condition_function_id: str | None = Field(
        default=None, description="Called first with the tick; answers false to skip the function."
    )


class CronTick(Wire):
    """A time that has come."""

    trigger: Literal["cron"]
    job_id: str = Field(description="Id of the binding.")
    scheduled_time: str = Field(description="When it was due, RFC 3339.")
    actual_time: str = Field(description="When it fired, RFC 3339.")


CRON = TriggerSpec(
    "cron",
    "Fires at the times of a cron expression; missed times are skipped and runs never overlap.",
    CronConfig,
    CronTick,
)

FUNCTIONS: tuple[FunctionSpec, ...] = ()
TRIGGERS = (CRON,)
