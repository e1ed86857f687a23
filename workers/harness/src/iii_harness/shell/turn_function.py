"""`harness::turn`: one delivery of one durable step (harness-loop 6.1, 17).

A delivery of a step that is executing here is dropped. What may pass by itself is tried again in place; any other error
ends the turn, and only when that cannot be stored does the queue get the error, so that it delivers again.
"""

from __future__ import annotations

from typing import Any, Final

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

from iii_contracts.harness.turn import TurnRequest
from iii_harness.shell.generation import InProgress
from iii_harness.shell.session_names import SessionNames
from iii_harness.shell.step import Outcome, Step, Tools
from iii_kit.bus import Invocation
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger
from iii_kit.trace import Spanned

log = logger(__name__)

TRIES: Final = 10
PAUSE_SECONDS: Final = 0.5

_tracer = trace.get_tracer("iii_harness")


class TurnFunction:
    """Serves `harness::turn`."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._parts = tools.parts
        self._names = SessionNames(tools.parts)

    async def turn(self, request: TurnRequest, _: Invocation) -> dict[str, Any]:
        """Run the step that was delivered, once."""
        session_id, turn_id, step = request.session_id, request.turn_id, request.step
        if not self._parts.executing.enter(session_id, turn_id, step):
            return _answer(session_id, Outcome("running", skipped=True))
        try:
            tags = _tags(request, await self._names.of(session_id, turn_id))
            with Spanned(_tracer, "harness::turn step", tags) as span:
                outcome = await self._run(request)
                if span.is_recording():
                    _mark(span, outcome)
            return _answer(session_id, outcome)
        finally:
            self._parts.executing.leave(session_id, turn_id, step)

    async def _run(self, request: TurnRequest) -> Outcome:
        attempt = 0
        while True:
            last = attempt >= TRIES
            try:
                return await Step(self._tools, request, retried=attempt > 0, last_try=last).run()
            except EpochEnded:
                raise
            except Exception as error:
                if last or not is_transient(error):
                    return await self._broken(request, error)
                log.warning("step_retried", session=request.session_id, step=request.step, error=str(error))
            attempt += 1
            await self._parts.world.clock.sleep(PAUSE_SECONDS)

    async def _broken(self, request: TurnRequest, error: Exception) -> Outcome:
        """End the turn of a step that cannot be run; one that is over or not this one is left alone."""
        log.error("step_failed", session=request.session_id, step=request.step, error=str(error), exc_info=error)
        async with self._parts.locks.hold(request.session_id):
            self._parts.turns.forget(request.session_id)
            record = await self._parts.turns.load(request.session_id)
            if record is None or record.turn_id != request.turn_id:
                return Outcome("running", skipped=True)
            if record.terminal:
                # Its end is stored, but perhaps not told.
                await self._tools.endings.tell(record)
                return Outcome(record.status)
            return Outcome(await self._tools.endings.broken(record, error))


def is_transient(error: Exception) -> bool:
    """True for a failed dependency that may be back in a moment, and for nothing that was being written."""
    if isinstance(error, InProgress):
        return True
    if not isinstance(error, BusError):
        return False
    text = str(error)
    if "enqueue harness::turn" in text:
        return False
    if error.code == "harness/state":
        return ("state::get" in text or "state::list" in text) and _away(text)
    if error.code != "harness/dependency":
        return False
    return _away(text) or ("session::" in text and ("timed out" in text.lower() or "TIMEOUT" in text))


def _away(text: str) -> bool:
    lowered = text.lower()
    return any(sign in lowered for sign in ("function_not_found", "invocation_stopped", "not connected"))


def _answer(session_id: str, outcome: Outcome) -> dict[str, Any]:
    answer: dict[str, Any] = {"session_id": session_id, "status": outcome.status, "skipped": outcome.skipped}
    return answer if outcome.next_step is None else {**answer, "next_step": outcome.next_step}


def _tags(request: TurnRequest, session_name: str | None) -> dict[str, str]:
    """The baggage that the step's span and every span below it copy."""
    tags = {
        "iii.session.id": request.session_id,
        "iii.message.id": request.turn_id,
        "iii.tag.kind": "harness.subagent" if request.depth else "harness.turn",
    }
    if session_name is not None:
        tags["iii.session.name"] = session_name
    if request.message_preview:
        tags["iii.tag.message"] = request.message_preview
        if request.depth:
            tags["iii.tag.display_name"] = f"Sub-agent · {request.message_preview}"
    return tags


def _mark(span: Span, outcome: Outcome) -> None:
    span.set_attribute("iii.turn.status", outcome.status)
    if outcome.status == "failed" and not outcome.skipped:
        span.set_attribute("iii.tag.outcome", "failed")
        span.set_status(Status(StatusCode.ERROR))
