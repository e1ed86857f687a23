"""The context of one step, fitted by the context manager (harness-loop 12.3 to 12.7).

Whether there is one is asked anew at every step: without one the window goes out as it is (12.6); with one its
failures are failures of the step. A stop of the turn ends the wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from pydantic import TypeAdapter, ValidationError

from iii_contracts.context import ASSEMBLE, COUNT_TOKENS, AssembleAnswer, CountAnswer
from iii_contracts.problems import describe
from iii_contracts.spec import FunctionSpec
from iii_harness.decide import context_fit, context_request, context_snapshot
from iii_harness.decide.context_fit import Fit
from iii_harness.decide.context_snapshot import Context, Measured
from iii_harness.decide.failure import OVERFLOW, Failure, own_failure
from iii_harness.decide.window import Window
from iii_harness.errors import dependency
from iii_harness.ports import Message
from iii_harness.record import TurnRecord
from iii_harness.shell.parts import Parts
from iii_harness.shell.racing import Background, unless_stopped
from iii_harness.shell.writes import Writes
from iii_kit.bus import Json, Opts
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger

T = TypeVar("T")

log = logger(__name__)

PATIENCE_S: Final = 0.2
"""How long an assembly takes before the session says that it prepares its context: most take a few milliseconds."""


class Absent(Exception):
    """Nobody serves `context::assemble`."""


class Stopped(Exception):
    """The turn was told to stop while its context was assembled."""


class Overflow(Exception):
    """Nothing makes the context fit the model."""


class Draft(msgspec.Struct, frozen=True):
    """A step before its context is assembled: the router's request without messages, and what the log gives."""

    record: TurnRecord
    request: dict[str, Any]
    window: Window
    told: Sequence[Message]
    """What this step tells the model, behind everything else."""
    fallback: str | None
    """Why the prompt goes out without sections, when it does."""


class Assembled(msgspec.Struct, frozen=True):
    """A request with its context, and what is to be kept of it."""

    request: dict[str, Any]
    context: Context
    compaction: dict[str, Any] | None


class Overflowed(msgspec.Struct, frozen=True):
    """The step cannot be asked."""

    failure: Failure
    compaction: dict[str, Any] | None


class Assembling:
    """Asks the context manager."""

    def __init__(self, parts: Parts, writes: Writes, background: Background) -> None:
        self._parts = parts
        self._writes = writes
        self._background = background

    @property
    def present(self) -> bool:
        """False when the registry is known and has no context manager; what is not known is asked (12.6)."""
        return not self._parts.absent(ASSEMBLE.id)

    async def of(self, draft: Draft) -> Assembled | Overflowed:
        """The context of a step. Raises `Absent`, `Stopped`, or `BusError` when the context manager fails."""
        cost_before = await self._cost_before(draft.record)
        compacting = Compacting()
        try:
            return await self._fitted(draft, cost_before, compacting)
        except Overflow as error:
            failure = own_failure(OVERFLOW, "context_assembly", str(error))
            return Overflowed(failure, compacting.record)

    async def _fitted(self, draft: Draft, cost_before: float | None, compacting: Compacting) -> Assembled:
        """Assemble; once more, with more room, when what comes behind it makes it too large (12.5)."""
        base = context_request.overhead_of(draft.request)
        fit = await self._assembled(draft, base, compacting)
        final = await self._size(draft, fit, base)
        if context_fit.too_large(final, fit.answer):
            fit = await self._assembled(draft, context_fit.roomier(fit, base, final), compacting)
            final = await self._size(draft, fit, base)
            problem = context_fit.too_large(final, fit.answer)
            if problem is not None:
                raise Overflow(problem)
        prompt = fit.answer.system_prompt
        request, fallback = context_request.prompted(draft.request, prompt, draft.fallback)
        applied = fit.answer.applied
        snapshot = context_snapshot.taken(
            draft.record,
            Measured(fit.answer, base, final, final - context_fit.size(fit, base, None)),
            summarised=applied.compacted or draft.window.summary is not None,
            head_tokens=applied.summarized_head_tokens if applied.compacted else draft.window.head_tokens,
            surface_digest=request.get("cache_intent", {}).get("surface_digest"),
            fallback=fallback,
            now_ms=self._parts.world.clock.now_ms(),
        )
        return Assembled(_sent(request, fit), Context(snapshot, cost_before), compacting.record)

    async def _assembled(self, draft: Draft, overhead: int, compacting: Compacting) -> Fit:
        data = context_request.assembly(draft.request, draft.window, overhead)
        answer = _read(ASSEMBLE, AssembleAnswer, await self._asked(draft.record, data))
        problem = context_fit.broken(answer, len(draft.window.entries))
        if problem is not None:
            raise dependency(ASSEMBLE.id, BusError("invalid_response", problem))
        compacting.note(context_fit.compaction(answer, draft.window.entries))
        problem = context_fit.overflow(answer)
        if problem is not None:
            raise Overflow(problem)
        return context_fit.fit(answer, draft.told, overhead)

    async def _size(self, draft: Draft, fit: Fit, base: int) -> int:
        """The final size: counted anew when the assembled messages are not all that goes out."""
        if not fit.changed:
            return context_fit.size(fit, base, None)
        data = context_request.count(draft.request, fit.messages, fit.answer.system_prompt)
        try:
            answer = await self._waited(draft.record, COUNT_TOKENS, data)
        except EpochEnded:
            raise
        except BusError as error:
            raise dependency(COUNT_TOKENS.id, error) from error
        return context_fit.size(fit, base, _read(COUNT_TOKENS, CountAnswer, answer).tokens)

    async def _asked(self, record: TurnRecord, data: dict[str, Any]) -> Json:
        """The answer of `context::assemble`; asked once more when the manager went away with the question."""
        again = True
        while True:
            try:
                return await self._waited(record, ASSEMBLE, data)
            except EpochEnded:
                raise
            except BusError as error:
                if error.code == "function_not_found" and ASSEMBLE.id in error.message:
                    raise Absent from error
                if context_fit.is_overflow(str(error)):
                    raise Overflow(str(error)) from error
                if not (again and error.code == "invocation_stopped"):
                    raise dependency(ASSEMBLE.id, error) from error
            again = False

    async def _waited(self, record: TurnRecord, spec: FunctionSpec, data: dict[str, Any]) -> Json:
        """One call of the context manager; a stop ends the wait, and a long one is shown."""
        opts = Opts(timeout_ms=self._parts.limits().context_timeout_ms)
        work = asyncio.ensure_future(self._parts.bus.call(spec.id, data, opts=opts))
        showing = asyncio.ensure_future(self._show_later(record))
        try:
            if not await unless_stopped(self._parts.signals, record.turn_id, work):
                work.add_done_callback(lambda _: log.info("late_context_dropped", turn=record.turn_id))
                self._background.keep(work)
                raise Stopped
        finally:
            showing.cancel()
        return work.result()

    async def _show_later(self, record: TurnRecord) -> None:
        await self._parts.world.clock.sleep(PATIENCE_S)
        await self._writes.preparing(record)

    async def _cost_before(self, record: TurnRecord) -> float | None:
        """What the session has cost so far; None when that cannot be read."""
        known = record.context_snapshot
        if known is None:
            try:
                known = await self._parts.contexts.read(record.session_id)
            except EpochEnded:
                raise
            except BusError as error:
                log.warning("context_snapshot_unreadable", session=record.session_id, error=str(error))
                return None
        return context_snapshot.cost_of(known)


class Compacting:
    """The compaction of a step: of its assemblies the last one that made one."""

    def __init__(self) -> None:
        self.record: dict[str, Any] | None = None

    def note(self, record: dict[str, Any] | None) -> None:
        """One assembly is done."""
        self.record = record or self.record


def _sent(request: dict[str, Any], fit: Fit) -> dict[str, Any]:
    """The router's request with its messages; the caller's output ceiling is not above the model's (7.3)."""
    made = {**request, "messages": fit.messages}
    if "max_output_tokens" in request:
        made["max_output_tokens"] = min(request["max_output_tokens"], fit.answer.effective_max_output_tokens)
    return made


@cache
def _validator(kind: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(kind)


def _read(spec: FunctionSpec, kind: type[T], answer: Json) -> T:
    try:
        return _validator(kind).validate_python(answer)
    except ValidationError as error:
        raise dependency(spec.id, BusError("invalid_response", describe(error))) from error
