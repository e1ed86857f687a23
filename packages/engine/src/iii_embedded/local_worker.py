"""The engine's side of a worker in this process (design "One Bus, two wires"; engine spec 9, 23).

It runs the functions that its `LocalBus` serves, asks its providers about bindings (one question after the other per
provider, as over a socket), and sends the events of committed transactions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from iii_embedded.calls import Answer, Failure, Request
from iii_embedded.outbox import FAREWELL_S
from iii_embedded.registry import DEFAULT, Function, elsewhere
from iii_embedded.waiting import Waiting
from iii_embedded.workers import Acknowledge, Worker
from iii_kit.bus import Binding, Call, Json, Opts, Provider
from iii_kit.encoding import decode, encode, exchanged
from iii_kit.errors import BusError, EpochEnded, Unencodable
from iii_kit.logs import logger
from iii_kit.storage import Store
from iii_kit.trace import NOTHING, Carrier

if TYPE_CHECKING:
    from iii_embedded.local_function import LocalFunction
    from iii_embedded.routing import Router
    from iii_embedded.triggers import BoundTrigger

_log = logger(__name__)

Work = Coroutine[Any, Any, Any]
Settle = Callable[[asyncio.Task[Any]], None]
Run: TypeAlias = "tuple[asyncio.Task[Any], LocalFunction, Answer | None]"


ENDED = Failure("epoch_ended", "the engine has stopped")
"""What the waiting calls of a worker get when it is ended."""


class LocalWorker(Worker):
    """A worker whose functions run on the engine's own loop. Nothing leaves it once it is `gone`."""

    def __init__(self, id_: str, name: str, now_ms: int, router: Router, store: Store, *, builtin: bool) -> None:
        super().__init__(id_, now_ms, namespace=DEFAULT, name=name, builtin=builtin)
        self.store = store
        self.router = router
        self.providers: dict[str, Provider] = {}
        self.waiting = Waiting()
        self._context: Context = copy_context()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._runs: dict[Request, Run] = {}
        """The calls that its async functions execute."""
        self._questions: dict[str, asyncio.Task[None]] = {}

    @property
    def open_calls(self) -> int:
        """Calls that it executes as tasks plus calls that it waits for."""
        return len(self._tasks) + len(self._runs) + len(self.waiting)

    def execute(self, function: Function, request: Request, answer: Answer | None) -> None:
        """Run one of its functions."""
        if self.gone or function.local is None:
            return
        function.local.start(request, answer)

    def run(self, function: LocalFunction, request: Request, answer: Answer | None, work: Work) -> None:
        """Run a call: its work answers by itself and says `ran` at its end."""
        task = asyncio.get_running_loop().create_task(work, context=self._context.copy())
        self._runs[request] = task, function, answer

    def ran(self, request: Request) -> None:
        """A call has been answered."""
        self._runs.pop(request, None)

    def spawn(self, work: Work, settle: Settle | None = None) -> asyncio.Task[Any]:
        """Run a coroutine as a task of this worker: in the context of its start, ended by a crash."""
        task = asyncio.get_running_loop().create_task(work, context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if settle is not None:
            task.add_done_callback(settle)
        return task

    def sender(self, traceparent: str | None, baggage: str | None) -> Callable[[Sequence[Call]], None]:
        """What sends the calls of a transaction once it is on disk, with the trace of the call that made it."""
        if traceparent is None and baggage is None:
            return self.send
        return partial(self.send, trace=Carrier(traceparent, baggage))

    def send(self, calls: Sequence[Call], trace: Carrier = NOTHING) -> None:
        """Send calls without waiting for their answers; one that cannot be sent is logged."""
        if self.gone:
            return
        for call in calls:
            try:
                request = self.request(call.fn, call.data, call.opts, trace)
            except BusError as error:
                _log.error("event_not_sent", function=call.fn, code=error.code, message=error.message)
                continue
            if call.kind == "enqueue":
                self.router.enqueue(request, call.queue, None)
            else:
                self.router.route(request, None)

    def request(self, fn: str, data: Json, opts: Opts, trace: Carrier) -> Request:
        """A call of this worker, encoded and checked."""
        namespace = self.address(fn, opts)
        encoded, value = self.arguments(data, lazily=True)
        metadata = None if opts.metadata is None else encode(opts.metadata)
        return Request(fn, encoded, namespace, self, self.caller_id, metadata, *trace, None, value)

    def address(self, fn: str, opts: Opts) -> str:
        """The namespace in which a call looks for its function."""
        if opts.namespace is None:
            return DEFAULT
        if not opts.namespace.strip():
            raise BusError("INVALID_NAMESPACE", "namespace must not be blank", fn)
        return opts.namespace

    def arguments(self, data: Json, *, lazily: bool = False) -> tuple[bytes, Any]:
        """The data of a call as JSON bytes, and what they decode to (see `exchanged`)."""
        if data is None and not self.builtin:
            # As on the other wire, where a call without data is dropped unanswered (engine spec 21.5).
            raise Unencodable("$", "the data of a call cannot be null")
        return exchanged(data, lazily=lazily)

    def offer(self, binding: BoundTrigger, acknowledge: Acknowledge) -> None:
        """Ask the provider; a refusal is its `BusError`."""
        self._ask(binding.trigger_type, lambda: self._bound(binding, acknowledge))

    def withdraw(self, binding: BoundTrigger) -> None:
        """Tell the provider that a binding is gone."""
        self._ask(binding.trigger_type, lambda: self._unbound(binding))

    def refuse_binding(self, binding: BoundTrigger, failure: Failure) -> None:
        """Log it, as the SDK does over a socket."""
        _log.error("binding_refused", type=binding.trigger_type, function=binding.function_id, message=failure.message)

    def refuse_function(self, namespace: str, function_id: str, owner_id: str) -> None:
        """A worker of this process that takes a taken id is a mistake of the composition: said at once."""
        raise ValueError(
            f"function {function_id} of worker {self.name!r} is already served by {owner_id or 'the engine'}"
        )

    def ended(self) -> None:
        """Stop everything that runs for this worker, and fail what waits on its bus."""
        self.gone = True
        for task in list(self._tasks):
            task.cancel()
        for request, (task, function, answer) in list(self._runs.items()):
            if getcoroutinestate(cast("Work", task.get_coro())) == CORO_CREATED:
                del self._runs[request]
                function.stopped(request, answer)
            task.cancel()
        self.waiting.end(ENDED)

    async def finished(self) -> None:
        """Return when what was stopped has ended, or has had its time to."""
        if self._tasks or self._runs:
            await asyncio.wait([*self._tasks, *(run[0] for run in self._runs.values())], timeout=FAREWELL_S)

    def report(self, done: asyncio.Task[Any]) -> None:
        """Log how a task ended that nobody waits for."""
        if not done.cancelled() and (error := done.exception()) is not None and not isinstance(error, EpochEnded):
            _log.error("work_failed", worker=self.name, exc_info=error)

    def _ask(self, type_id: str, question: Callable[[], Work]) -> None:
        earlier = self._questions.get(type_id)
        task = self.spawn(_after(earlier, question))
        self._questions[type_id] = task
        task.add_done_callback(lambda done: self._asked(type_id, done))

    def _asked(self, type_id: str, done: asyncio.Task[None]) -> None:
        if self._questions.get(type_id) is done:
            del self._questions[type_id]

    async def _bound(self, binding: BoundTrigger, acknowledge: Acknowledge) -> None:
        provider = self.providers.get(binding.trigger_type)
        if provider is None:
            return
        try:
            await provider.bound(_as_told(binding))
        except BusError as error:
            acknowledge(Failure(error.code, error.message))
        except Exception as error:
            _log.error("provider_failed", type=binding.trigger_type, exc_info=error)
            acknowledge(Failure("trigger_registration_failed", str(error)))
        else:
            acknowledge(None)

    async def _unbound(self, binding: BoundTrigger) -> None:
        provider = self.providers.get(binding.trigger_type)
        if provider is None:
            return
        try:
            await provider.unbound(binding.id)
        except Exception as error:
            _log.error("provider_failed", type=binding.trigger_type, exc_info=error)


async def _after(earlier: asyncio.Task[None] | None, question: Callable[[], Work]) -> None:
    if earlier is not None:
        await asyncio.wait([earlier])
    await question()


def _as_told(binding: BoundTrigger) -> Binding:
    metadata = None if binding.metadata is None else decode(binding.metadata)
    return Binding(binding.id, binding.function_id, decode(binding.config), metadata, elsewhere(binding.namespace))
