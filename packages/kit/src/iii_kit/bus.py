"""The bus as a worker sees it (design, "One Bus, two wires"; engine spec 1-9, 21).

`iii_kit.sdk_bus.SdkBus` implements these protocols on `iii-sdk`, `iii_embedded.local_bus.LocalBus` in process.
Semantics are the same on both and are proven by one conformance suite:

* JSON in and out: arguments and results are encoded once, checked (`iii_kit.encoding`) and never shared;
* an object that arrives over the bus carries `_caller_worker_id`; `serve` drops it before the contract validates;
* a handler's error reaches the caller as `BusError`; the codes of workers are matched with `BusError.matches`;
* the trace context and baggage of the current OpenTelemetry context travel with every call;
* delivery of enqueued calls is at least once, of void calls at most once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from iii_contracts.spec import FunctionSpec, TriggerSpec
from iii_kit.errors import BusError
from iii_kit.storage import Reader, Tx

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list and dict with string keys."""

Fn: TypeAlias = str
"""A function id; `Opts.namespace` says where when it is not the default routing."""

DEFAULT_TIMEOUT_MS = 30_000
"""What a call waits when its `Opts` name no time-out (engine spec 21.5)."""


class Opts(msgspec.Struct, frozen=True):
    """How one call travels."""

    timeout_ms: int = DEFAULT_TIMEOUT_MS
    metadata: Json = None
    namespace: str | None = None
    hidden: str | None = None
    """Bookkeeping that viewers of traces leave out, under this name; carried only where somebody traces."""
    unread: bool = False
    """Nobody reads the result: a sequence has None in its place."""


class Call(msgspec.Struct, frozen=True):
    """One call as a value, for `Caller.sequence` and `Tx.after_commit`."""

    fn: Fn
    data: Json
    kind: Literal["call", "void", "enqueue"] = "call"
    queue: str = ""
    opts: Opts = Opts()


class Invocation(msgspec.Struct, frozen=True):
    """What a handler may know about the call it serves, beside the request itself."""

    function_id: Fn
    caller: str | None = None
    metadata: Json = None
    traceparent: str | None = None
    baggage: str | None = None


Handler: TypeAlias = Callable[[Any, Invocation], Awaitable[Json]]
"""An async function of the validated request. Returns plain JSON, a pydantic model (dumped without unset fields), or a
`msgspec.Raw`: an answer that is encoded and known to be good JSON, as text that was checked when it was stored."""


@dataclass(frozen=True, slots=True)
class TxHandler:
    """A function that is one transaction: runs in the writer under a savepoint, its events leave after the commit.

    `long`: it may touch thousands of rows, so it keeps off the event loop.
    """

    run: Callable[[Tx, Any, Invocation], Json]
    long: bool = False


@dataclass(frozen=True, slots=True)
class ReadHandler:
    """A function that only reads committed data. `bounded`: a few rows by key, cheap enough for the loop's thread;
    a callable decides it by the request."""

    run: Callable[[Reader, Any, Invocation], Json]
    bounded: bool | Callable[[Any], bool] = False

    def is_bounded(self, request: Any) -> bool:
        """True when this request may be answered on the loop's thread."""
        return self.bounded if isinstance(self.bounded, bool) else self.bounded(request)


class ChannelRef(msgspec.Struct, frozen=True):
    """One end of a channel as it travels inside payloads (engine spec 8.1)."""

    channel_id: str
    access_key: str
    direction: Literal["read", "write"]

    def to_json(self) -> dict[str, str]:
        """The wire form."""
        return {"channel_id": self.channel_id, "access_key": self.access_key, "direction": self.direction}

    @staticmethod
    def from_json(value: Json) -> ChannelRef:
        """The ref in its wire form. Raises `BusError` when it is none."""
        try:
            return msgspec.convert(value, ChannelRef)
        except msgspec.ValidationError:
            text = "a channel ref needs channel_id, access_key and direction"
            raise BusError("invalid_channel_ref", text) from None


class Source(Protocol):
    """The read end of a channel. Iteration ends when the writer is gone and everything it sent has been read."""

    def __aiter__(self) -> AsyncIterator[str | bytes]: ...

    async def close(self) -> None:
        """Leave; the writer notices at its next send."""
        ...


class Sink(Protocol):
    """The write end of a channel."""

    async def send(self, item: str | bytes) -> None:
        """Send one item; waits while the buffer is full. Raises `BusError` `channel_closed` when the reader is gone."""
        ...

    async def close(self) -> None:
        """End the stream after everything sent has been handed over."""
        ...


class Channel(Protocol):
    """A fresh channel: `writer` is the ref to pass on, `source` the read end of its maker."""

    @property
    def writer(self) -> ChannelRef:
        """The write end, for a payload."""
        ...

    @property
    def source(self) -> Source:
        """The read end, connected."""
        ...


class Handle(Protocol):
    """Something registered; `close` takes it back and may be called twice."""

    def close(self) -> None:
        """Unregister."""
        ...


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding as the provider of its trigger type gets it."""

    id: str
    function_id: Fn
    config: Json
    metadata: Json = None
    namespace: str | None = None


class Provider(Protocol):
    """The side of a trigger type that keeps its bindings (engine spec 9, 21.7)."""

    async def bound(self, binding: Binding) -> None:
        """A binding is new, or is told again (same id replaces). Raise `BusError` to refuse it."""
        ...

    async def unbound(self, binding_id: str) -> None:
        """The binding is gone; unknown ids are fine."""
        ...

    def renewed(self) -> None:
        """A new connection begins: forget all bindings, the live ones are told again."""
        ...


class Caller(Protocol):
    """The outgoing half of a bus."""

    async def call(self, fn: Fn, data: Json, *, opts: Opts = Opts()) -> Json:
        """Call and wait for the result. Raises `BusError`; code `TIMEOUT` means "may have run"."""
        ...

    async def void(self, fn: Fn, data: Json, *, opts: Opts = Opts()) -> None:
        """Send and forget. Order to one target is kept on the embedded bus only."""
        ...

    async def enqueue(self, queue: str, fn: Fn, data: Json) -> str:
        """Hand a call to a queue; returns the receipt once the provider has accepted it."""
        ...

    async def sequence(self, calls: Sequence[Call]) -> list[Json]:
        """Make several calls in order, results in order; raises `PartialSequence` with the prefix that is done.

        One commit on the embedded stack, awaited one by one over a socket: every callee must be idempotent, no
        result may feed a later call of the sequence, and the caller must be right after any prefix.
        """
        ...

    async def channel(self, buffer: int = 64) -> Channel:
        """Make a channel and take its read end."""
        ...

    async def sink(self, ref: Json) -> Sink:
        """Take the write end that a payload carried (the wire form of `ChannelRef`)."""
        ...


class Host(Protocol):
    """The serving half of a bus. Everything registered is told to the engine again after a reconnect."""

    def serve(self, spec: FunctionSpec, run: Handler | TxHandler | ReadHandler) -> Handle:
        """Serve a declared function: validate the request by its contract, run, encode the result."""
        ...

    def bind(self, trigger: str, fn: Fn, config: Json, *, metadata: Json = None) -> Handle:
        """Bind `fn` to a trigger type, owned by this connection. Refusals are logged, as on the real bus."""
        ...

    def provide(self, spec: TriggerSpec, on: Provider) -> Handle:
        """Provide a trigger type."""
        ...

    def each_epoch(self, run: Callable[[], Awaitable[None]]) -> Handle:
        """Run `run` as a task at the start of every connection; cancelled when that connection ends."""
        ...


class Bus(Caller, Host, Protocol):
    """Both halves, and who we are on it."""

    @property
    def worker_id(self) -> str:
        """The id of the current connection."""
        ...
