"""A call as the router sees it, and how it ends (engine spec 3.2, 5, 6).

Payloads and results stay JSON bytes between the worker that wrote them and the worker that reads them, so that values
keep their exact form and nothing is shared between workers of one process.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import UNSET

from iii_kit.errors import BusError, EpochEnded

if TYPE_CHECKING:
    from iii_embedded.workers import Worker

NULL = b"null"
"""The JSON bytes of null."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The error of a call, as it stands on the wire."""

    code: str
    message: str
    stacktrace: str | None = None

    @staticmethod
    def of(error: BaseException) -> Failure:
        """What the caller of a function that raised `error` gets: codes of the bus are kept, others have none."""
        if isinstance(error, BusError):
            return Failure(error.code, error.message)
        return Failure("invocation_failed", str(error), "".join(traceback.format_exception(error)))

    def error(self, function_id: str) -> BusError:
        """This failure as an exception for a caller in this process."""
        if self.code == "epoch_ended":
            return EpochEnded()
        return BusError(self.code, self.message, function_id)


class Fresh(msgspec.Struct):
    """A result as a value that only its reader has: for a caller in this process."""

    value: Any


Outcome: TypeAlias = bytes | Fresh | Failure
"""The result, as JSON bytes or decoded from them for one reader, or the failure."""

Answer: TypeAlias = Callable[[Outcome], None]
"""Takes the outcome of one call, once."""


class Reply:
    """The answer of one call for a caller in this process, who gets a `Fresh` result.

    Kept when it comes at once, handed to the future that waits for it otherwise.
    """

    __slots__ = ("future", "outcome")

    def __init__(self) -> None:
        self.outcome: Any = None
        self.future: asyncio.Future[Any] | None = None

    def __call__(self, outcome: Any) -> None:
        """Take the answer."""
        future = self.future
        if future is None:
            self.outcome = outcome
        elif not future.done():
            future.set_result(outcome)


STOPPED = Failure("invocation_stopped", "Invocation stopped")
"""The executing worker left before it answered (engine spec 4.6)."""


class Request(msgspec.Struct, eq=False):
    """One call on its way to its function.

    `worker` is the caller whose order of calls is kept; `caller_id` is what `_caller_worker_id` will say, None for
    calls of the engine's own workers (engine spec 5.2).
    """

    function_id: str
    data: bytes
    namespace: str = "default"
    worker: Worker | None = None
    caller_id: str | None = None
    metadata: bytes | None = None
    traceparent: str | None = None
    baggage: str | None = None
    invocation_id: str | None = None
    value: Any = UNSET
    """What `data` decodes to, for the first reader alone, when the sender has it; a `Raw` says that it was checked."""
