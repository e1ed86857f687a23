"""Running a function of this process: decode, validate, run, encode (design "One Bus, two wires"; engine spec 5.3, 23).

The three kinds of handlers run where they belong: an async one as a task in a clean context, a `TxHandler` in the
writer under its savepoint, a `ReadHandler` on a read-only connection, or at once when it is bounded. A caller's reads
wait for its own earlier writes. The result is encoded once, inside the transaction where there is one, so that a result
that JSON cannot carry rolls its writes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from msgspec import UNSET

from iii_contracts.spec import CALLER, FunctionSpec
from iii_embedded.calls import NULL, STOPPED, Answer, Failure, Request
from iii_embedded.routing import refuse
from iii_kit.bus import Call, Handler, Invocation, ReadHandler, TxHandler
from iii_kit.encoding import decode, encode
from iii_kit.errors import BusError
from iii_kit.logs import logger
from iii_kit.serving import answer_of, request_of
from iii_kit.storage import Reader, Tx
from iii_kit.trace import Carrier, enter

if TYPE_CHECKING:
    from iii_embedded.local_worker import LocalWorker

_log = logger(__name__)


@dataclass(slots=True)
class Prepared:
    """A call whose request has been validated."""

    request: Any
    invocation: Invocation


class LocalFunction:
    """A declared function and its handler, served by a worker of this process."""

    def __init__(self, spec: FunctionSpec, run: Handler | TxHandler | ReadHandler, worker: LocalWorker) -> None:
        self.spec = spec
        self.worker = worker
        self.run = run
        self._start: Callable[[Prepared, Request, Answer | None], None]
        if isinstance(run, TxHandler):
            self._start = self._start_write
        elif isinstance(run, ReadHandler):
            self._start = self._start_read
        else:
            self._start = self._start_task

    def start(self, request: Request, answer: Answer | None) -> None:
        """Begin a call; `answer` hears how it ended. Never raises."""
        try:
            prepared = self.prepare(request)
            self._start(prepared, request, answer)
        except Exception as error:
            refuse(request, answer, self.failure(error))

    def prepare(self, request: Request) -> Prepared:
        """The validated request of a call; raises the error of a payload that does not fit."""
        data, request.value = request.value, UNSET
        if data is UNSET:
            data = decode(request.data)
        caller = request.caller_id
        if caller is None and type(data) is dict:
            caller = cast("dict[str, Any]", data).get(CALLER)
        metadata = None if request.metadata is None else decode(request.metadata)
        invocation = Invocation(self.spec.id, caller, metadata, request.traceparent, request.baggage)
        return Prepared(self.validated(data), invocation)

    def validated(self, data: Any) -> Any:
        """The request in the data of a call; raises the error of a payload that does not fit."""
        return request_of(self.spec, data)

    def failure(self, error: BaseException) -> Failure:
        """The failure of a call; what is no error of the bus is logged with its traceback."""
        if not isinstance(error, BusError):
            _log.error("handler_failed", function=self.spec.id, exc_info=error)
        return Failure.of(error)

    def _start_write(self, prepared: Prepared, request: Request, answer: Answer | None) -> None:
        handler = cast("TxHandler", self.run)

        def job(tx: Tx) -> bytes:
            return encoded(handler.run(tx, prepared.request, prepared.invocation))

        def told(result: bytes, error: BaseException | None) -> None:
            self._tell(result, error, request, answer)

        sent = self.worker.sender(request.traceparent, request.baggage)
        written = self.worker.store.submit(job, after=sent, long=handler.long, told=told)
        if request.worker is not None:
            request.worker.last_write = written

    def _start_read(self, prepared: Prepared, request: Request, answer: Answer | None) -> None:
        earlier = None if request.worker is None else request.worker.last_write
        if earlier is None or earlier.done():
            self._read(prepared, request, answer)
        else:
            earlier.add_done_callback(lambda _: self._read(prepared, request, answer))

    def _read(self, prepared: Prepared, request: Request, answer: Answer | None) -> None:
        handler = cast("ReadHandler", self.run)

        def job(reader: Reader) -> bytes:
            return encoded(handler.run(reader, prepared.request, prepared.invocation))

        if self.worker.gone:
            return
        if handler.is_bounded(prepared.request):
            try:
                outcome = self.worker.store.peek(job)
            except Exception as error:
                refuse(request, answer, self.failure(error))
            else:
                if answer is not None:
                    answer(outcome)
            return
        self.worker.spawn(self.worker.store.read(job), lambda done: self._settle(done, request, answer))

    def _start_task(self, prepared: Prepared, request: Request, answer: Answer | None) -> None:
        self.worker.run(self._work(prepared, request, answer), partial(self._stopped, request, answer))

    async def _work(self, prepared: Prepared, request: Request, answer: Answer | None) -> None:
        """The task of one call: its context is its own, and it answers before it ends."""
        try:
            if request.traceparent is not None or request.baggage is not None:
                enter(Carrier(request.traceparent, request.baggage))
            outcome = encoded(await cast("Handler", self.run)(prepared.request, prepared.invocation))
            if answer is not None:
                answer(outcome)
        except asyncio.CancelledError:
            self._stopped(request, answer)
            raise
        except Exception as error:
            refuse(request, answer, self.failure(error))
        except BaseException as error:
            _log.error("process_ends", function=self.spec.id, exc_info=error)
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
        finally:
            self.worker.ran()

    def _stopped(self, request: Request, answer: Answer | None) -> None:
        refuse(request, answer, STOPPED)

    def _settle(self, done: asyncio.Future[bytes], request: Request, answer: Answer | None) -> None:
        if done.cancelled():
            refuse(request, answer, STOPPED)
        elif (error := done.exception()) is not None:
            self._tell(b"", error, request, answer)
        else:
            self._tell(done.result(), None, request, answer)

    def _tell(self, result: bytes, error: BaseException | None, request: Request, answer: Answer | None) -> None:
        if isinstance(error, Exception):
            refuse(request, answer, self.failure(error))
        elif error is not None:
            _log.error("process_ends", function=self.spec.id, exc_info=error)
        elif answer is not None:
            answer(result)


def encoded(result: Any) -> bytes:
    """The JSON bytes of what a handler returned."""
    return NULL if result is None else encode(answer_of(result))


Sender = Callable[[Sequence[Call]], None]
"""Sends the calls of a transaction that has been committed."""
