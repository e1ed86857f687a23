"""What a comparison reads of other workers: all sessions at once, and of each three things at once (eval 11.2).

The session itself must be there, or there is no comparison. Its status and its metrics may be missing: what went
wrong then stays with the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from iii_contracts.eval.comparison import SessionMetaProjectionV1
from iii_contracts.harness.turn import TurnStatus
from iii_contracts.model import Wire
from iii_contracts.problems import describe, is_object
from iii_contracts.session_metrics import SessionMetricsResponseV1
from iii_eval.errors import dependency, failure_text, invalid_request, serialization, session_not_found
from iii_kit.bus import Caller, Json, Opts
from iii_kit.errors import BusError, EpochEnded

T = TypeVar("T")

TIMEOUT_MS: Final = 30_000
"""What each read may take."""

GET: Final = "session::get"
STATUS: Final = "harness::status"
METRICS: Final = "harness::metrics"

PARENT: Final = "parent_session_id"
"""The metadata key that marks a session below another one."""


class Found(Wire):
    """The answer of `session::get`, as far as a comparison reads it."""

    meta: SessionMetaProjectionV1


class TurnReport(Wire):
    """The answer of `harness::status`, as far as a comparison reads it."""

    turn_id: str | None = None
    status: TurnStatus
    result_error: str | None = None
    expects_wake: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of one session. `report` and `metrics` are None where there is none, or where `errors` says why."""

    meta: SessionMetaProjectionV1
    report: TurnReport | None
    metrics: SessionMetricsResponseV1 | None
    errors: tuple[str, ...]


class Unreadable(Exception):
    """An answer of another shape."""


class _Answer(Generic[T]):
    """A shape that is read leniently: what it does not declare is dropped, at every level."""

    def __init__(self, shape: type[T]) -> None:
        self._declared = shape

    @cached_property
    def _shape(self) -> TypeAdapter[T]:
        # Built at the first comparison: a start does not pay for it.
        return TypeAdapter[T](self._declared)

    def read(self, data: Json) -> T:
        """The answer in `data`. Raises `Unreadable`."""
        try:
            return self._shape.validate_python(data, extra="ignore")
        except ValidationError as error:
            raise Unreadable(describe(error)) from None


_found = _Answer(Found)
_report = _Answer(TurnReport)
_metrics = _Answer(SessionMetricsResponseV1)


async def collect(bus: Caller, session_ids: Sequence[str]) -> list[Reading]:
    """Everything about the sessions, in their order. Raises when one is unknown, unreadable or below another."""
    metas = [asyncio.ensure_future(_meta(bus, session_id)) for session_id in session_ids]
    reports = [asyncio.ensure_future(_status(bus, session_id)) for session_id in session_ids]
    usages = [asyncio.ensure_future(_usage(bus, session_id)) for session_id in session_ids]
    try:
        sessions = await asyncio.gather(*metas)
        for session in sessions:
            _check_root(session)
        seen, used = await asyncio.gather(asyncio.gather(*reports), asyncio.gather(*usages))
    except BaseException:
        await _abandon([*metas, *reports, *usages])
        raise
    return [
        Reading(session, report[0], usage[0], tuple(error for error in (report[1], usage[1]) if error is not None))
        for session, report, usage in zip(sessions, seen, used, strict=True)
    ]


async def _abandon(reads: Sequence[asyncio.Future[Any]]) -> None:
    """Leave the reads that still wait: their answers are of no use any more."""
    for read in reads:
        read.cancel()
    await asyncio.gather(*reads, return_exceptions=True)


async def _meta(bus: Caller, session_id: str) -> SessionMetaProjectionV1:
    try:
        answer = await bus.call(GET, {"session_id": session_id}, opts=Opts(timeout_ms=TIMEOUT_MS))
    except EpochEnded:
        raise
    except BusError as error:
        raise dependency(GET, error, TIMEOUT_MS) from error
    if answer is None:
        raise session_not_found(session_id)
    try:
        return _found.read(answer).meta
    except Unreadable as problem:
        raise serialization(GET, str(problem)) from None


def _check_root(session: SessionMetaProjectionV1) -> None:
    if is_object(session.metadata) and PARENT in session.metadata:
        raise invalid_request(
            f"`session_ids`: {session.session_id} has `metadata.{PARENT}`: it is part of another session's tree, "
            "and only root sessions are comparable"
        )


async def _status(bus: Caller, session_id: str) -> tuple[TurnReport | None, str | None]:
    async def read() -> TurnReport | None:
        asked = {"session_id": session_id, "verbose": True}
        answer = await bus.call(STATUS, asked, opts=Opts(timeout_ms=TIMEOUT_MS))
        return None if answer is None else _report.read(answer)

    return await _local(STATUS, read())


async def _usage(bus: Caller, session_id: str) -> tuple[SessionMetricsResponseV1 | None, str | None]:
    async def read() -> SessionMetricsResponseV1:
        asked = {"root_session_id": session_id}
        return _metrics.read(await bus.call(METRICS, asked, opts=Opts(timeout_ms=TIMEOUT_MS)))

    return await _local(METRICS, read())


async def _local(function_id: str, reading: Coroutine[Any, Any, T]) -> tuple[T | None, str | None]:
    """What was read, or the text that stays with the session."""
    try:
        return await reading, None
    except EpochEnded:
        raise
    except BusError as error:
        return None, f"{function_id}: {failure_text(error, TIMEOUT_MS)}"
    except Unreadable as problem:
        return None, f"{function_id}: its answer cannot be read: {problem}"
