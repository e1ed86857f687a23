"""`LocalBus.sequence`: consecutive transactions of one sequence share one commit (design "`Bus.sequence`").

A failing call ends the sequence and leaves what came before committed: the sequence then runs once more, every call
under a savepoint of its own. Events of the calls leave once the commit is on disk, each as its own function's worker's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from iii_embedded.calls import Failure, Reply
from iii_embedded.local_function import LocalFunction, fresh
from iii_embedded.registry import DEFAULT
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
    worker = bus.worker
    if worker.gone:
        raise EpochEnded
    results: list[Any] = []
    at = 0
    while at < len(calls):
        batch = _Batch()
        problem = None if bus.stepwise else batch.gather(bus, calls, at)
        steps = batch.steps
        if steps:
            at += len(steps)
            reply = Reply()
            worker.last_write = worker.store.submit(partial(_run, steps), long=batch.long, told=partial(_settle, reply))
            ran: Ran | Failure = await bus.answered(reply, batch.timeout_ms)
            if isinstance(ran, Failure):
                problem = ran.error(steps[0].call.fn)
            else:
                done = steps if ran.error is None else steps[: ran.done]
                results += [step.result if step.receipt is None else step.receipt for step in done]
                if ran.error is not None:
                    problem = _error(steps[ran.done], ran.error)
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


class _Batch:
    """Leading calls of a sequence that are transactions of this engine."""

    __slots__ = ("long", "steps", "timeout_ms")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.timeout_ms = 0
        self.long = False

    def gather(self, bus: LocalBus, calls: Sequence[Call], at: int) -> BusError | None:
        """Take calls from `at` on; the error of the first that cannot even start."""
        trace = carrier()
        for call in calls[at:] if at else calls:
            step = Step(call)
            try:
                local = (_enter_queue if call.kind == "enqueue" else _enter)(bus, call, step, trace)
            except BusError as error:
                if call.kind != "void":
                    return error
                drop(call.fn, Failure.of(error))
            else:
                if local is None:
                    return None
                step.function = local
                self.long = self.long or cast("TxHandler", local.run).long
            self.steps.append(step)
            if call.opts.timeout_ms > self.timeout_ms:
                self.timeout_ms = call.opts.timeout_ms
        return None


def _enter(bus: LocalBus, call: Call, step: Step, trace: Carrier) -> LocalFunction | None:
    """Make the step ready to run; the function that runs it, None when that is no transaction of this engine."""
    worker, opts = bus.worker, call.opts
    function = bus.router.resolve(worker.address(call.fn, opts), call.fn)
    if isinstance(function, Failure):
        raise function.error(call.fn)
    local = function.local
    if local is None or not local.writes:
        return None
    _, data = worker.arguments(call.data)
    traceparent, baggage = trace
    if traceparent is not None or baggage is not None:
        traceparent, baggage = carried(traceparent, baggage, function)
    metadata = None if opts.metadata is None else copy(opts.metadata)
    step.invocation = local.called(data, worker.caller_id, metadata, traceparent, baggage)
    step.request = local.validated(data)
    return local


def _enter_queue(bus: LocalBus, call: Call, step: Step, trace: Carrier) -> LocalFunction | None:
    """`_enter` for what goes to a queue: its provider runs it."""
    worker = bus.worker
    provider = bus.router.resolve(DEFAULT, QUEUE_PROVIDER)
    if isinstance(provider, Failure):
        raise NO_QUEUE.error(call.fn)
    local = provider.local
    if local is None or not local.writes:
        return None
    step.receipt = bus.fresh_id()
    namespace = worker.address(call.fn, call.opts)
    handed = handed_over(call.queue, call.fn, namespace, worker.arguments(call.data)[1], step.receipt, *trace)
    try:
        step.request = local.validated(handed)
    except BusError as error:
        raise enqueue_failure(Failure.of(error)).error(call.fn) from error
    return local


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
