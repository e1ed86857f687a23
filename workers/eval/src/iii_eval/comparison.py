"""`eval::compare-sessions` (eval 11): check the request, read, put the sessions side by side. Nothing is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iii_contracts.eval.comparison import FEWEST, MOST, SCHEMA_VERSION, CompareSessionsRequest
from iii_contracts.harness.turn import TERMINAL
from iii_eval import figures
from iii_eval.collection import Reading, TurnReport, collect
from iii_eval.errors import invalid_request
from iii_kit.bus import Caller, Invocation
from iii_kit.world import Clock


class Comparison:
    """Serves `eval::compare-sessions`."""

    def __init__(self, bus: Caller, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock

    async def compare(self, request: CompareSessionsRequest, _: Invocation) -> dict[str, Any]:
        """Handler of `eval::compare-sessions`."""
        check(request)
        readings = await collect(self._bus, request.session_ids)
        return {
            "schema_version": SCHEMA_VERSION,
            "captured_at": self._clock.now_ms(),
            "baseline_session_id": request.baseline_session_id,
            "sessions": items(readings, request.session_ids.index(request.baseline_session_id)),
        }


def check(request: CompareSessionsRequest) -> None:
    """Raise what is wrong with the request, the first rule first."""
    ids = request.session_ids
    if not FEWEST <= len(ids) <= MOST:
        raise invalid_request(f"`session_ids` must name {FEWEST} to {MOST} sessions, got {len(ids)}")
    for place, session_id in enumerate(ids):
        if not session_id.strip():
            raise invalid_request(f"`session_ids[{place}]` is empty")
    for place, session_id in enumerate(ids):
        if session_id in ids[:place]:
            raise invalid_request(f"`session_ids` must be unique, {session_id} is named more than once")
    if request.baseline_session_id not in ids:
        raise invalid_request(f"`baseline_session_id`: {request.baseline_session_id} is not one of `session_ids`")


def items(readings: Sequence[Reading], baseline: int) -> list[dict[str, Any]]:
    """The sessions of a response, in the order of `readings`; `baseline` is the place of the baseline."""
    summaries = [None if reading.metrics is None else figures.summary(reading.metrics) for reading in readings]
    return [
        _item(reading, summary, figures.deltas(summary, summaries[baseline]))
        for reading, summary in zip(readings, summaries, strict=True)
    ]


def _item(reading: Reading, summary: figures.Summary | None, deltas: dict[str, figures.Delta]) -> dict[str, Any]:
    meta = reading.meta.model_dump(exclude_unset=True)
    item: dict[str, Any] = {
        "session": {name: value for name, value in meta.items() if value is not None},
        "lifecycle": lifecycle(reading),
    }
    if reading.metrics is not None:
        item["metrics"] = reading.metrics.model_dump(exclude_unset=True, exclude_none=True)
        item["summary"] = summary
    item["deltas"] = deltas
    if reading.errors:
        item["errors"] = list(reading.errors)
    return item


def lifecycle(reading: Reading) -> dict[str, Any]:
    """How far a session has come; what nobody knows is left out."""
    metrics = reading.metrics
    made: dict[str, Any] = {"session_status": reading.meta.status, **_turn(reading.report)}
    if metrics is not None:
        made["complete"] = metrics.complete
    return {**made, "partial": metrics is None or not metrics.complete}


def _turn(report: TurnReport | None) -> dict[str, Any]:
    if report is None:
        return {}
    made: dict[str, Any] = {
        "turn_id": report.turn_id,
        "turn_status": report.status,
        "terminal": report.status in TERMINAL and not report.expects_wake,
        "expects_wake": report.expects_wake,
        "result_error": report.result_error,
    }
    return {name: value for name, value in made.items() if value is not None}
