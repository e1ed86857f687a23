"""What becomes of a job after one delivery (siblings 9, engine spec 14.4): a pure decision."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from iii_contracts.engine.queue import QueueConfig
from iii_kit.errors import BusError
from iii_queue.schedule import Job

LONGEST_ABSENCE_MS = 60_000
"""Longest delay between two tries of a job whose function is not registered."""

LONGEST_BACKOFF_MS = 2**53
"""Delays are cut here, so that a doubled one stays a number that every store holds."""


@dataclass(frozen=True, slots=True)
class Done:
    """The function answered without error: the job goes."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The delivery failed: attempt `attempt` is used up and the next is due at `not_before`."""

    attempt: int
    not_before: int
    error: str


@dataclass(frozen=True, slots=True)
class Absent:
    """The function is not registered: no attempt is used up."""

    not_before: int


@dataclass(frozen=True, slots=True)
class Dead:
    """The last attempt failed: the job is a dead letter."""

    attempt: int
    error: str


Verdict: TypeAlias = Done | Retry | Absent | Dead


def judge(job: Job, config: QueueConfig, error: BusError | None, now: int) -> Verdict:
    """The verdict over a delivery that ended at `now` with `error`, or well."""
    if error is None:
        return Done()
    if _is_absent(job, error):
        delay = max(config.poll_interval_ms, 1) * 2 ** min(job.absences, 32)
        return Absent(now + min(delay, LONGEST_ABSENCE_MS))
    attempt = job.attempt + 1
    text = f"{error.code}: {error.message}"
    if attempt >= max(config.max_retries, 1):
        return Dead(attempt, text)
    delay = config.backoff_ms * 2 ** min(attempt - 1, 64)
    return Retry(attempt, now + min(delay, LONGEST_BACKOFF_MS), text)


def _is_absent(job: Job, error: BusError) -> bool:
    """True when the job's own function is missing, not one that it called."""
    if error.code != "function_not_found":
        return False
    return re.search(rf"(?<![\w:-]){re.escape(job.function_id)}(?![\w:-])", error.message) is not None
