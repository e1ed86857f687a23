"""What becomes of a delivery."""

from __future__ import annotations

import pytest

from iii_contracts.engine.queue import QueueConfig
from iii_kit.errors import BusError
from iii_queue.schedule import Job
from iii_queue.verdict import Absent, Dead, Done, Retry, judge

FAILED = BusError("invocation_failed", "boom")
MISSING = BusError("function_not_found", "Function t::fn not found in namespace default.")


def job(attempt: int = 0, absences: int = 0) -> Job:
    return Job(1, "id", "q", "g", "t::fn", attempt=attempt, absences=absences)


def test_an_answer_ends_the_job() -> None:
    assert judge(job(), QueueConfig(), None, 1000) == Done()


@pytest.mark.requirement("queue.retry.backoff")
def test_the_delay_doubles_with_every_attempt_and_the_last_one_ends_it() -> None:
    config = QueueConfig(max_retries=4, backoff_ms=100)
    seen = [judge(job(attempt), config, FAILED, 1000) for attempt in range(4)]
    text = "invocation_failed: boom"
    assert seen == [Retry(1, 1100, text), Retry(2, 1200, text), Retry(3, 1400, text), Dead(4, text)]


@pytest.mark.parametrize("retries", [0, 1])
def test_no_retries_and_one_are_a_single_delivery(retries: int) -> None:
    assert isinstance(judge(job(), QueueConfig(max_retries=retries), FAILED, 0), Dead)


def test_a_lost_worker_uses_up_an_attempt() -> None:
    error = BusError("invocation_stopped", "Invocation stopped")
    assert isinstance(judge(job(), QueueConfig(max_retries=2), error, 0), Retry)


@pytest.mark.requirement("queue.absent.no_attempt")
def test_a_missing_function_waits_longer_and_longer_and_uses_up_no_attempt() -> None:
    seen = [judge(job(2, absences), QueueConfig(), MISSING, 0) for absences in (0, 1, 2, 9, 10, 1000)]
    assert seen == [Absent(100), Absent(200), Absent(400), Absent(51_200), Absent(60_000), Absent(60_000)]


@pytest.mark.requirement("queue.absent.only_the_target")
def test_a_function_that_the_handler_misses_is_a_failure() -> None:
    error = BusError("function_not_found", "Function other-t::fn not found in namespace default.")
    assert isinstance(judge(job(), QueueConfig(), error, 0), Retry)


def test_delays_stay_numbers_that_a_store_holds() -> None:
    config = QueueConfig(max_retries=1_000, backoff_ms=2**60)
    verdict = judge(job(500), config, FAILED, 0)
    assert isinstance(verdict, Retry) and verdict.not_before < 2**63
