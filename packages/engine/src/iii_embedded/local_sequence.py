"""`LocalBus.sequence`: consecutive transactions of one sequence share one commit (design "`Bus.sequence`").

Every call runs under a savepoint of its own. A failing one rolls back its own savepoint, ends the sequence and leaves
what came before committed. Events of the calls leave once the commit is on disk, each as its own function's worker's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec

from iii_embedded.calls import NULL, Failure, Request
from iii_embedded.local_function import LocalFunction
from iii_embedded.registry import DEFAULT
from iii_embedded.routing import NO_QUEUE, QUEUE_PROVIDER, carry, enqueue_failure, enqueued, refuse
from iii_kit.bus import Call, TxHandler
from iii_kit.encoding import decode
from iii_kit.errors import BusError, EpochEnded, PartialSequence
from iii_kit.storage import Cursor, Tx
from iii_kit.trace import Carrier, carrier

if TYPE_CHECKING:
    from iii_embedded.local_bus import LocalBus


@dataclass(slots=True)
class Step:
    """One call of a sequence inside the shared transaction; a refused void call has no job."""

    call: Call
    request: Request
    function: LocalFunction | None = None
    job: Callable[[Tx], bytes] | None = None
    receipt: str | None = None
    result: bytes | None = None


@dataclass(slots=True)
class Ran:
    """What the shared transaction did: how many steps, and why it did not do the next one."""

    done: int = 0
    error: Exception | None = None
    dropped: list[tuple[Step, Exception]] = field(default_factory=list[tuple[Step, Exception]])
    """Void steps that failed: nobody hears of it."""


class _StepTx:
    """The transaction of one step: what waits for the commit is kept apart from its neighbours'."""

    __slots__ = ("events", "execute", "hooks")

    def __init__(self, execute: Callable[..., Cursor]) -> None:
        self.execute = execute
        self.events: list[Call] = []
        self.hooks: list[Callable[[], None]] = []

    def after_commit(self, call: Call) -> None:
        """Send `call` once the group is on disk."""
        self.events.append(call)

    def on_commit(self, run: Callable[[], None]) -> None:
        """Run `run` on the loop once the group is on disk."""
        self.hooks.append(run)

    def hand_over(self, tx: Tx, step: Step) -> None:
        """The step is done: what waits for the commit now waits for the group's."""
        for run in self.hooks:
            tx.on_commit(run)
        if self.events and step.function is not None:
            send = step.function.worker.sender(step.request.traceparent, step.request.baggage)
            tx.on_commit(partial(send, self.events))


async def run_sequence(bus: LocalBus, calls: Sequence[Call]) -> list[Any]:
    """The results of `calls`, made in order; raises `PartialSequence` with those that are done."""
    results: list[Any] = []
    at = 0
    while at < len(calls):
        steps, problem = ([], None) if bus.stepwise else _prepare(bus, calls[at:])
        if steps:
            at += len(steps)
            problem = await _commit(bus, steps, results) or problem
        elif problem is None:
            problem = await _alone(bus, calls[at], results)
            at += 1
        if isinstance(problem, EpochEnded):
            raise problem
        if problem is not None:
            raise PartialSequence(results, problem)
    return results


async def _alone(bus: LocalBus, call: Call, results: list[Any]) -> BusError | None:
    try:
        results.append(await bus.perform(call))
    except BusError as error:
        return error
    return None


def _prepare(bus: LocalBus, calls: Sequence[Call]) -> tuple[list[Step], BusError | None]:
    """The leading calls that are transactions of this engine, and the error of the first that cannot even start."""
    steps: list[Step] = []
    trace = carrier()
    for call in calls:
        try:
            step = _step(bus, call, trace)
        except BusError as error:
            if call.kind != "void":
                return steps, error
            refused = Request(call.fn, NULL)
            refuse(refused, None, Failure.of(error))
            step = Step(call, refused)
        if step is None:
            break
        steps.append(step)
    return steps, None


def _step(bus: LocalBus, call: Call, trace: Carrier) -> Step | None:
    request = bus.worker.request(call, *trace)
    if call.kind == "enqueue":
        return _enqueue_step(bus, call, request)
    function = bus.router.resolve(request.namespace, call.fn)
    if isinstance(function, Failure):
        raise function.error(call.fn)
    local = function.local
    if local is None or not isinstance(local.run, TxHandler):
        return None
    if trace.traceparent is not None or trace.baggage is not None:
        carry(request, function)
    return Step(call, request, local, local.write_job(local.prepare(request)))


def _enqueue_step(bus: LocalBus, call: Call, request: Request) -> Step | None:
    provider = bus.router.resolve(DEFAULT, QUEUE_PROVIDER)
    if isinstance(provider, Failure):
        raise NO_QUEUE.error(call.fn)
    local = provider.local
    if local is None or not isinstance(local.run, TxHandler):
        return None
    receipt = bus.fresh_id()
    handed = Request(QUEUE_PROVIDER, msgspec.json.encode(enqueued(request, call.queue, receipt)), worker=request.worker)
    try:
        prepared = local.prepare(handed)
    except BusError as error:
        raise enqueue_failure(Failure.of(error)).error(call.fn) from error
    return Step(call, handed, local, local.write_job(prepared), receipt)


async def _commit(bus: LocalBus, steps: list[Step], results: list[Any]) -> BusError | None:
    """Run the steps in one commit and add their results; the error that ended them."""
    timeout_ms = max(step.call.opts.timeout_ms for step in steps)

    long = any(step.function is not None and cast("TxHandler", step.function.run).long for step in steps)
    future = asyncio.ensure_future(bus.worker.store.submit(partial(_run, steps), long=long))
    bus.worker.last_write = future
    reply = bus.reply()
    future.add_done_callback(lambda done: _settle(done, reply))
    ran: Ran | Failure = await bus.answered(reply, timeout_ms)
    if isinstance(ran, Failure):
        return ran.error(steps[0].call.fn)
    results.extend(_result(step) for step in steps[: ran.done])
    return None if ran.error is None else _error(steps[ran.done], ran.error)


def _run(steps: list[Step], tx: Tx) -> Ran:
    """Inside the writer: every step under its savepoint, up to the first that fails."""
    ran = Ran()
    for step in steps:
        if step.job is not None:
            tx.execute("SAVEPOINT step")
            own = _StepTx(tx.execute)
            try:
                step.result = step.job(own)
                own.hand_over(tx, step)
            except Exception as error:
                tx.execute("ROLLBACK TO step")
                if step.call.kind == "void":
                    ran.dropped.append((step, error))
                else:
                    ran.error = error
            tx.execute("RELEASE step")
            if ran.error is not None:
                return ran
        ran.done += 1
    return ran


def _settle(done: asyncio.Future[Ran], answer: Callable[[Ran | Failure], None]) -> None:
    """On the loop, after the commit: release what the transaction did."""
    if done.cancelled():
        return
    error = done.exception()
    if error is not None:
        if isinstance(error, Exception):
            answer(Failure.of(error))
        return
    ran = done.result()
    for step, dropped in ran.dropped:
        refuse(step.request, None, Failure.of(dropped))
    answer(ran)


def _result(step: Step) -> Any:
    if step.call.kind == "void":
        return None
    return step.receipt if step.receipt is not None else decode(step.result or NULL)


def _error(step: Step, error: Exception) -> BusError:
    failure = Failure.of(error) if step.function is None else step.function.failure(error)
    if step.call.kind == "enqueue":
        failure = enqueue_failure(failure)
    return failure.error(step.call.fn)
