"""`harness::status` (harness-loop 3.2): the report of a turn, lean or whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from iii_contracts.harness.status import StatusRequest
from iii_harness.contracts_digest import canonical
from iii_harness.queue_rows import QueueRow
from iii_harness.record import TurnRecord
from iii_kit.bus import Invocation, Json

LEAN_RESULT: Final = 600
"""Characters of a result in the lean report."""

CUT: Final = " …(truncated; use verbose: true for the full result)"


class StatusReader:
    """Reads what a report is made of: record, parked rows, context snapshot. A missing or ended turn has its session's
    status repaired beside the reply."""

    def __init__(
        self,
        load: Callable[[str], Awaitable[TurnRecord | None]],
        parked: Callable[[str], Awaitable[Sequence[QueueRow]]],
        context: Callable[[str], Awaitable[Json]],
        repair_soon: Callable[[str], None],
    ) -> None:
        self._load = load
        self._parked = parked
        self._context = context
        self._repair_soon = repair_soon

    async def status(self, request: StatusRequest, _: Invocation) -> dict[str, Any] | None:
        """Handler of `harness::status`."""
        record = await self._load(request.session_id)
        if record is None or record.terminal:
            self._repair_soon(request.session_id)
        if record is None:
            return None
        report = lean(record)
        if request.verbose:
            if record.result_error is None:
                del report["result_error"]
            rows = await self._parked(record.session_id)
            report.update(verbose(record, rows, record.context_snapshot or await self._context(record.session_id)))
        return report


def lean(record: TurnRecord) -> dict[str, Any]:
    """What every report has."""
    report: dict[str, Any] = {
        "session_id": record.session_id,
        "turn_id": record.turn_id,
        "status": record.status,
        "step": record.step,
        "turn_count": record.turn_count,
        "children": [
            {"function_call_id": call_id, "session_id": call.child_session_id, "turn_id": call.child_turn_id}
            for call_id, call in record.calls.items()
            if call.child_session_id is not None and call.child_turn_id is not None
        ],
        "expects_wake": False,
        "max_turns": record.options.max_turns,
        "pending_function_calls": [i for i, call in record.calls.items() if call.state in ("triggered", "pending")],
        "result_error": record.result_error,
    }
    if record.result is not None:
        report["result"] = cut(record.result)
    if record.stop_reason is not None:
        report["stop_reason"] = record.stop_reason
    return report


def verbose(record: TurnRecord, parked: Sequence[QueueRow], context: Json) -> dict[str, Any]:
    """What the whole report adds, or has otherwise."""
    report: dict[str, Any] = {
        "validation_retries": record.validation_retries,
        "max_validation_retries": record.options.max_validation_retries,
        "transient_resumes": record.transient_resumes,
        "max_transient_resumes": record.options.max_transient_resumes,
        "partial_result_available": record.status == "failed" and record.result is not None,
        "depth": record.depth,
    }
    if record.result is not None:
        report["result"] = record.result
    if parked:
        report["queued"] = [row.public() for row in parked]
    if context is not None:
        report["context"] = context
    return report


def cut(result: Json) -> Json:
    """A result as the lean report has it."""
    text = canonical(result).decode()
    return result if len(text) <= LEAN_RESULT else text[:LEAN_RESULT] + CUT
