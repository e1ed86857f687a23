"""`LocalBus`: the bus of a worker in the engine's own process (design "One Bus, two wires").

Arguments and results are encoded once, checked, and decoded afresh for their reader. Calls of one caller keep their
order. A cancelled caller forgets its answer, nothing more. After a crash every use raises `EpochEnded`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import CoroutineType
from typing import TYPE_CHECKING, Any, cast

from iii_contracts.spec import FunctionSpec, TriggerSpec
from iii_embedded.calls import Failure, Fresh, Reply
from iii_embedded.local_function import LocalFunction
from iii_embedded.local_sequence import run_sequence
from iii_embedded.local_worker import LocalWorker
from iii_embedded.registry import DEFAULT, Function
from iii_embedded.triggers import BoundTrigger, TriggerType, candidates
from iii_kit.bus import (
    Call,
    Channel,
    ChannelRef,
    Handle,
    Handler,
    Json,
    Opts,
    Provider,
    ReadHandler,
    Sink,
    Source,
    TxHandler,
)
from iii_kit.encoding import decode, encode
from iii_kit.errors import EpochEnded
from iii_kit.trace import carrier

if TYPE_CHECKING:
    from iii_embedded.engine import Engine

_PLAIN = Opts()


class Registered:
    """Something a bus has registered; `close` takes it back, once."""

    def __init__(self, withdraw: Callable[[], None]) -> None:
        self._withdraw: Callable[[], None] | None = withdraw

    def close(self) -> None:
        """Take it back."""
        withdraw, self._withdraw = self._withdraw, None
        if withdraw is not None:
            withdraw()


class LocalChannel:
    """A channel made on this bus, with its read end."""

    def __init__(self, writer: ChannelRef, source: Source) -> None:
        self.writer = writer
        self.source = source


class LocalBus:
    """A `Bus` in process. `stepwise` makes the calls of `sequence` one by one, as over a socket."""

    def __init__(self, engine: Engine, worker: LocalWorker, *, stepwise: bool = False) -> None:
        self._engine = engine
        self.router = engine.router
        self.worker = worker
        self.stepwise = stepwise

    @property
    def worker_id(self) -> str:
        """The id of this worker."""
        return self.worker.id

    # -- calling

    async def call(self, fn: str, data: Json, *, opts: Opts = _PLAIN) -> Json:
        """Call and wait for the result."""
        worker = self.worker
        if worker.gone:
            raise EpochEnded
        reply = Reply()
        self.router.route(worker.request(fn, data, opts, carrier()), reply)
        return await self._answer(reply, fn, opts)

    async def void(self, fn: str, data: Json, *, opts: Opts = _PLAIN) -> None:
        """Send and forget."""
        self._alive()
        self.router.route(self.worker.request(fn, data, opts, carrier()), None)

    async def enqueue(self, queue: str, fn: str, data: Json, *, opts: Opts = _PLAIN) -> str:
        """Hand a call to a queue; returns the receipt once the provider has accepted it."""
        self._alive()
        reply = Reply()
        self.router.enqueue(self.worker.request(fn, data, opts, carrier()), queue, reply)
        result = await self._answer(reply, fn, opts)
        return cast("dict[str, str]", result)["messageReceiptId"]

    def sequence(self, calls: Sequence[Call]) -> CoroutineType[Any, Any, list[Json]]:
        """Make calls in order; those that are transactions of this engine share one commit unless `stepwise`."""
        return run_sequence(self, calls)

    async def perform(self, call: Call) -> Json:
        """Make one call of a sequence by itself: its result, None for a void one, the receipt for an enqueue."""
        if call.kind == "enqueue":
            return await self.enqueue(call.queue, call.fn, call.data, opts=call.opts)
        if call.kind == "void":
            await self.void(call.fn, call.data, opts=call.opts)
            return None
        result = await self.call(call.fn, call.data, opts=call.opts)
        return None if call.opts.unread else result

    async def channel(self, buffer: int = 64) -> Channel:
        """Make a channel and take its read end."""
        self._alive()
        return LocalChannel(*self._engine.channels.connected(buffer))

    async def sink(self, ref: Json) -> Sink:
        """Take the write end that a payload carried."""
        self._alive()
        return self._engine.channels.open_sink(ChannelRef.from_json(ref))

    async def _answer(self, reply: Reply, fn: str, opts: Opts) -> Json:
        outcome = reply.outcome
        if outcome is None:
            outcome = await self.answered(reply, opts.timeout_ms)
        if type(outcome) is Fresh:
            return outcome.value
        if isinstance(outcome, Failure):
            raise outcome.error(fn)
        return decode(outcome)

    def fresh_id(self) -> str:
        """A new UUID."""
        return self._engine.world.ids.uuid()

    async def answered(self, reply: Reply, timeout_ms: int) -> Any:
        """The outcome of something that has been sent; a failure `TIMEOUT` when it is not in time."""
        loop = asyncio.get_running_loop()
        future = reply.future = loop.create_future()
        queue = self.worker.waiting.queue(loop, timeout_ms)
        queue[future] = loop.time() + timeout_ms / 1000
        try:
            return await future
        finally:
            del queue[future]

    # -- serving

    def serve(self, spec: FunctionSpec, run: Handler | TxHandler | ReadHandler) -> Handle:
        """Serve a declared function."""
        self._alive()
        worker = self.worker
        local = LocalFunction(spec, run, worker)
        self._engine.registry.add(
            Function(spec.id, DEFAULT, worker, spec.description, spec.metadata or None, local=local, spec=spec)
        )
        return Registered(lambda: self._engine.registry.remove(worker, spec.id))

    def bind(self, trigger: str, fn: str, config: Json, *, metadata: Json = None) -> Handle:
        """Bind a function to a trigger type, owned by this worker; a refusal is logged."""
        self._alive()
        binding = BoundTrigger(
            self.fresh_id(),
            trigger,
            fn,
            encode(config),
            None if metadata is None else encode(metadata),
            candidates=candidates(trigger, None, DEFAULT),
            owner=self.worker,
        )
        self._engine.triggers.bind(binding)
        return Registered(lambda: self._unbind(binding.id))

    def provide(self, spec: TriggerSpec, on: Provider) -> Handle:
        """Provide a trigger type."""
        self._alive()
        worker = self.worker
        worker.providers[spec.id] = on
        on.renewed()
        self._engine.triggers.provide(TriggerType(spec.id, DEFAULT, worker, spec.description, spec=spec))
        return Registered(lambda: self._engine.triggers.retract(worker, DEFAULT, spec.id))

    def each_epoch(self, run: Callable[[], Awaitable[None]]) -> Handle:
        """Run `run` once: this connection lasts as long as the engine."""
        self._alive()

        async def epoch() -> None:
            await run()

        task = self.worker.spawn(epoch(), self.worker.report)
        return Registered(lambda: cast("None", task.cancel()))

    def close(self) -> None:
        """Leave the engine, as a connection that ends."""
        self._engine.leave(self.worker)

    def _unbind(self, binding_id: str) -> None:
        self._engine.triggers.unbind(binding_id)

    def _alive(self) -> None:
        if self.worker.gone:
            raise EpochEnded
