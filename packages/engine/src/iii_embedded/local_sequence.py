"""`LocalBus.sequence`: consecutive transactions of one sequence share one commit (design "`Bus.sequence`").

A failing call ends the sequence and leaves what came before committed: the sequence then runs once more, every call
under a savepoint of its own. Events of the calls leave once the commit is on disk, each as its own function's worker's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from iii_embedded.calls import Failure
from iii_embedded.local_function import LocalFunction, fresh
from iii_embedded.registry import DEFAULT, Function
from iii_embedded.routing import NO_QUEUE, QUEUE_PROVIDER, carried, drop, enqueue_failure, handed_over
from iii_kit.bus import Call, Invocation, TxHandler
from iii_kit.encoding import copy
from iii_kit.errors import BusError, EpochEnded, PartialSequence
from iii_kit.storage import Cursor, Tx
from iii_kit.trace import Carrier, carrier

if TYPE_CHECKING:
    from iii_embedded.local_bus import LocalBus


class Step:
    """One call of a sequence inside the shared transaction; a refused void call has no function."""

    __slots__ = ("call", "function", "invocation", "receipt", "request", "result")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.function: LocalFunction | None = None
        self.request: Any = None
        self.invocation: Invocation = _UNCALLED
        self.receipt: str | None = None
        self.result: Any = None


_UNCALLED = Invocation(QUEUE_PROVIDER)
"""What the queue provider learns of a call: everything is in its request."""


class Ran:
    """What the shared transaction did: how many steps, and why it did not do the next one."""

    __slots__ = ("done", "dropped", "error")

    def __init__(self) -> None:
        self.done = 0
        self.error: Exception | None = None
        self.dropped: list[tuple[Step, Exception]] = []
        """Void steps that failed: nobody hears of it."""


class _StepTx:
    """The transaction of one step: what waits for the commit is kept apart from its neighbours'."""

    __slots__ = ("careful", "events", "execute", "hooks")

    def __init__(self, execute: Callable[..., Cursor], *, careful: bool) -> None:
        self.execute = execute
        self.careful = careful
        self.events: list[Call] = []
        self.hooks: list[Callable[[], None]] = []

    def after_commit(self, call: Call) -> None:
        """Send `call` once the group is on disk."""
        self.events.append(call)

    def on_commit(self, run: Callable[[], None]) -> None:
        """Run `run` on the loop once the group is on disk."""
        self.hooks.append(run)

    def forget(self) -> None:
        """The step has failed: nothing waits for the commit."""
        self.events.clear()
        self.hooks.clear()

    def hand_over(self, tx: Tx, step: Step) -> None:
        """The step is done: what waits for the commit now waits for the group's."""
        for run in self.hooks:
            tx.on_commit(run)
        if self.events and step.function is not None:
            send = step.function.worker.sender(step.invocation.traceparent, step.invocation.baggage)
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
        step = Step(call)
        try:
            if not (_enter_queue if call.kind == "enqueue" else _enter)(bus, step, trace):
                break
        except BusError as error:
            if call.kind != "void":
                return steps, error
            drop(call.fn, Failure.of(error))
            step.function = None
        steps.append(step)
    return steps, None


def _enter(bus: LocalBus, step: Step, trace: Carrier) -> bool:
    """Make the step ready to run; False when its function is no transaction of this engine."""
    call, worker = step.call, bus.worker
    function = _transaction(bus.router.resolve(worker.address(call.fn, call.opts), call.fn), call.fn)
    if function is None:
        return False
    local = cast("LocalFunction", function.local)
    _, data = worker.arguments(call.data)
    metadata = None if call.opts.metadata is None else copy(call.opts.metadata)
    traceparent, baggage = trace
    if traceparent is not None or baggage is not None:
        traceparent, baggage = carried(traceparent, baggage, function)
    step.invocation = local.called(data, worker.caller_id, metadata, traceparent, baggage)
    step.request = local.validated(data)
    step.function = local
    return True


def _enter_queue(bus: LocalBus, step: Step, trace: Carrier) -> bool:
    call, worker = step.call, bus.worker
    provider = bus.router.resolve(DEFAULT, QUEUE_PROVIDER)
    function = _transaction(NO_QUEUE if isinstance(provider, Failure) else provider, call.fn)
    if function is None:
        return False
    local = cast("LocalFunction", function.local)
    step.receipt = bus.fresh_id()
    namespace = worker.address(call.fn, call.opts)
    handed = handed_over(call.queue, call.fn, namespace, worker.arguments(call.data)[1], step.receipt, *trace)
    try:
        step.request = local.validated(handed)
    except BusError as error:
        raise enqueue_failure(Failure.of(error)).error(call.fn) from error
    step.function = local
    return True


def _transaction(found: Function | Failure, function_id: str) -> Function | None:
    """The function when it is a transaction of this engine; raises why it cannot be called."""
    if isinstance(found, Failure):
        raise found.error(function_id)
    return found if found.local is not None and isinstance(found.local.run, TxHandler) else None


async def _commit(bus: LocalBus, steps: list[Step], results: list[Any]) -> BusError | None:
    """Run the steps in one commit and add their results; the error that ended them."""
    timeout_ms, long = 0, False
    for step in steps:
        timeout_ms = max(timeout_ms, step.call.opts.timeout_ms)
        long = long or (step.function is not None and cast("TxHandler", step.function.run).long)
    reply = bus.reply()
    bus.worker.last_write = bus.worker.store.submit(partial(_run, steps), long=long, told=partial(_settle, reply))
    ran: Ran | Failure = await bus.answered(reply, timeout_ms)
    if isinstance(ran, Failure):
        return ran.error(steps[0].call.fn)
    for step in steps[: ran.done]:
        results.append(
            step.receipt if step.call.kind == "enqueue" else None if step.call.kind == "void" else step.result
        )
    return None if ran.error is None else _error(steps[ran.done], ran.error)


def _run(steps: list[Step], tx: Tx) -> Ran:
    """Inside the writer: every step, up to the first that fails; what came before it stays when the run is careful."""
    ran = Ran()
    for step in steps:
        if step.function is not None:
            own = _StepTx(tx.execute, careful=tx.careful)
            if tx.careful:
                _run_carefully(step, own, tx, ran)
            else:
                _run_step(step, own)
            if ran.error is not None:
                return ran
            own.hand_over(tx, step)
        ran.done += 1
    return ran


def _run_step(step: Step, own: _StepTx) -> None:
    run = cast("TxHandler", cast("LocalFunction", step.function).run).run
    result = run(own, step.request, step.invocation)
    if step.call.kind == "call" and not step.call.opts.unread:
        step.result = fresh(result)


def _run_carefully(step: Step, own: _StepTx, tx: Tx, ran: Ran) -> None:
    tx.execute("SAVEPOINT step")
    try:
        _run_step(step, own)
    except Exception as error:
        tx.execute("ROLLBACK TO step")
        own.forget()
        if step.call.kind == "void":
            ran.dropped.append((step, error))
        else:
            ran.error = error
    tx.execute("RELEASE step")


def _settle(answer: Callable[[Ran | Failure], None], ran: Ran | None, error: BaseException | None) -> None:
    """On the loop, after the commit: release what the transaction did."""
    if ran is not None and error is None:
        for step, dropped in ran.dropped:
            drop(step.call.fn, Failure.of(dropped))
        answer(ran)
    elif isinstance(error, Exception):
        answer(Failure.of(error))


def _error(step: Step, error: Exception) -> BusError:
    failure = Failure.of(error) if step.function is None else step.function.failure(error)
    if step.call.kind == "enqueue":
        failure = enqueue_failure(failure)
    return failure.error(step.call.fn)
