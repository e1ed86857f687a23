"""Running a function of this process: decode, validate, run, encode (design "One Bus, two wires"; engine spec 5.3, 23).

The three kinds of handlers run where they belong: an async one as a task in a clean context, a `TxHandler` in the
writer under its savepoint, a `ReadHandler` on a read-only connection, or at once when it is bounded. A caller's reads
wait for its own earlier writes. The result is encoded once, inside the transaction where there is one, so that a result
that JSON cannot carry rolls its writes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import UNSET, Raw

from iii_contracts.spec import CALLER, FunctionSpec
from iii_embedded.calls import NULL, STOPPED, Answer, Failure, Fresh, Outcome, Reply, Request
from iii_embedded.routing import refuse
from iii_kit.bus import Call, Handler, Invocation, ReadHandler, TxHandler
from iii_kit.encoding import decode, decode_but, encode, exchanged
from iii_kit.errors import BusError
from iii_kit.logs import logger
from iii_kit.serving import answer_of, refusal
from iii_kit.storage import Reader, Tx
from iii_kit.trace import Carrier, enter

if TYPE_CHECKING:
    from iii_embedded.local_worker import LocalWorker

_log = logger(__name__)


class LocalFunction:
    """A declared function and its handler, served by a worker of this process."""

    def __init__(self, spec: FunctionSpec, run: Handler | TxHandler | ReadHandler, worker: LocalWorker) -> None:
        self.spec = spec
        self.worker = worker
        self.run = run
        self.writes = isinstance(run, TxHandler)
        self._start: Callable[[Any, Invocation, Request, Answer | None], None]
        if isinstance(run, TxHandler):
            self._start = self._start_write
        elif isinstance(run, ReadHandler):
            self._start = self._start_read
        else:
            self._start = self._start_task

    def start(self, request: Request, answer: Answer | None) -> None:
        """Begin a call; `answer` hears how it ended. Never raises."""
        try:
            data, request.value = request.value, UNSET
            if data is UNSET:
                data = decode(request.data)
            elif type(data) is Raw:
                data = decode_but(request.data, self.spec.undecoded) if self.spec.undecoded else decode(request.data)
            metadata = None if request.metadata is None else decode(request.metadata)
            called = self.called(data, request.caller_id, metadata, request.traceparent, request.baggage)
            self._start(self.validated(data), called, request, answer)
        except Exception as error:
            refuse(request, answer, self.failure(error))

    def called(
        self, data: Any, caller: str | None, metadata: Any, traceparent: str | None, baggage: str | None
    ) -> Invocation:
        """What its handler learns of a call; a payload that was passed on names the caller itself."""
        if caller is None and type(data) is dict:
            caller = cast("dict[str, Any]", data).get(CALLER)
        return Invocation(self.spec.id, caller, metadata, traceparent, baggage)

    def validated(self, data: Any) -> Any:
        """The request in the data of a call; raises the error of a payload that does not fit."""
        request, problem = self.spec.parse(data)
        if problem is not None:
            raise refusal(self.spec, problem)
        return request

    def failure(self, error: BaseException) -> Failure:
        """The failure of a call; what is no error of the bus is logged with its traceback."""
        if not isinstance(error, BusError):
            _log.error("handler_failed", function=self.spec.id, exc_info=error)
        return Failure.of(error)

    def _start_write(self, asked: Any, called: Invocation, request: Request, answer: Answer | None) -> None:
        handler = cast("TxHandler", self.run)

        def job(tx: Tx) -> Outcome:
            return outcome_of(handler.run(tx, asked, called), answer)

        def told(result: Outcome, error: BaseException | None) -> None:
            self._tell(result, error, request, answer)

        sent = self.worker.sender(request.traceparent, request.baggage)
        written = self.worker.store.submit(job, after=sent, long=handler.long, told=told)
        if request.worker is not None:
            request.worker.last_write = written

    def _start_read(self, asked: Any, called: Invocation, request: Request, answer: Answer | None) -> None:
        earlier = None if request.worker is None else request.worker.last_write
        if earlier is None or earlier.done():
            self._read(asked, called, request, answer)
        else:
            earlier.add_done_callback(lambda _: self._read(asked, called, request, answer))

    def _read(self, asked: Any, called: Invocation, request: Request, answer: Answer | None) -> None:
        handler = cast("ReadHandler", self.run)

        def job(reader: Reader) -> Outcome:
            return outcome_of(handler.run(reader, asked, called), answer)

        if self.worker.gone:
            return
        if handler.is_bounded(asked):
            try:
                outcome = self.worker.store.peek(job)
            except Exception as error:
                refuse(request, answer, self.failure(error))
            else:
                if answer is not None:
                    answer(outcome)
            return
        self.worker.spawn(self.worker.store.read(job), lambda done: self._settle(done, request, answer))

    def _start_task(self, asked: Any, called: Invocation, request: Request, answer: Answer | None) -> None:
        self.worker.run(self, request, answer, self._work(asked, called, request, answer))

    async def _work(self, asked: Any, called: Invocation, request: Request, answer: Answer | None) -> None:
        """The task of one call: its context is its own, and it answers before it ends."""
        try:
            if request.traceparent is not None or request.baggage is not None:
                enter(Carrier(request.traceparent, request.baggage))
            outcome = outcome_of(await cast("Handler", self.run)(asked, called), answer)
            if answer is not None:
                answer(outcome)
        except asyncio.CancelledError:
            self.stopped(request, answer)
            raise
        except Exception as error:
            refuse(request, answer, self.failure(error))
        except BaseException as error:
            _log.error("process_ends", function=self.spec.id, exc_info=error)
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
        finally:
            self.worker.ran(request)

    def stopped(self, request: Request, answer: Answer | None) -> None:
        """Answer a call that was ended."""
        refuse(request, answer, STOPPED)

    def _settle(self, done: asyncio.Future[Outcome], request: Request, answer: Answer | None) -> None:
        if done.cancelled():
            refuse(request, answer, STOPPED)
        elif (error := done.exception()) is not None:
            self._tell(b"", error, request, answer)
        else:
            self._tell(done.result(), None, request, answer)

    def _tell(self, result: Outcome, error: BaseException | None, request: Request, answer: Answer | None) -> None:
        if isinstance(error, Exception):
            refuse(request, answer, self.failure(error))
        elif error is not None:
            _log.error("process_ends", function=self.spec.id, exc_info=error)
        elif answer is not None:
            answer(result)


def outcome_of(result: Any, answer: Answer | None) -> Outcome:
    """What `answer` hears of what a handler returned."""
    if type(answer) is Reply:
        return Fresh(fresh(result))
    return NULL if result is None else encode(answer_of(result))


def fresh(result: Any) -> Any:
    """What a handler returned as a value of its own, checked as on the wire."""
    if result is None:
        return None
    _, value = exchanged(result if type(result) is dict else answer_of(result))
    return value


Sender = Callable[[Sequence[Call]], None]
"""Sends the calls of a transaction that has been committed."""
