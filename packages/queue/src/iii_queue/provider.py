"""The queue provider: `queue::define` and `engine::queue::enqueue` (siblings 9, engine spec 6.2, 14.1 to 14.4).

It sits on any bus: in the embedded engine, or as a worker of its own on a real one. Both functions are transactions,
so that an enqueue shares the commit of whatever it is made with.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, cast

from iii_contracts.engine.queue import DEFINE, ENQUEUE, DefineRequest, EnqueueRequest, QueueConfig
from iii_kit.bus import Bus, Invocation, Json, TxHandler
from iii_kit.encoding import stored
from iii_kit.errors import BusError
from iii_kit.storage import Store, Tx
from iii_kit.world import World
from iii_queue import tables
from iii_queue.dispatcher import GRACE_S, Dispatcher
from iii_queue.points import QueuePoint
from iii_queue.schedule import Job


class QueueProvider:
    """The queues of one store."""

    def __init__(self, bus: Bus, store: Store, world: World) -> None:
        self._world = world
        self._begun = asyncio.Event()
        self._problem: Exception | None = None
        self.dispatcher = Dispatcher(bus, store, world)
        bus.serve(DEFINE, TxHandler(self._define))
        bus.serve(ENQUEUE, TxHandler(self._enqueue))
        bus.each_epoch(self._begin)

    async def ready(self) -> None:
        """Returns once what was on disk has been taken over; raises what kept it from that."""
        await self._begun.wait()
        if self._problem is not None:
            raise RuntimeError(f"the queue cannot read its jobs: {self._problem}") from self._problem

    async def drain(self, grace_s: float = GRACE_S) -> None:
        """Begin no delivery any more, and let those that run end within the grace."""
        await self.dispatcher.drain(grace_s)

    async def _begin(self) -> None:
        try:
            await self.dispatcher.begin()
            self._problem = None
        except Exception as error:
            self._problem = error
            raise
        finally:
            self._begun.set()

    def _define(self, tx: Tx, request: DefineRequest, _: Invocation) -> Json:
        changed = tables.definition(tx, request.queue) != request.config
        if changed:
            tables.define(tx, request.queue, request.config)
        tx.on_commit(partial(self.dispatcher.defined, request.queue, request.config))
        return {"queue": request.queue, "changed": changed}

    def _enqueue(self, tx: Tx, request: EnqueueRequest, _: Invocation) -> Json:
        config = tables.definition(tx, request.queue)
        if config is None:
            raise BusError(
                "queue_not_found",
                f"queue '{request.queue}' is not defined; call queue::define before enqueueing",
            )
        group = group_of(config, request.queue, request.data)
        baggage = _worth_carrying(request)
        self._world.reach(QueuePoint.ENQUEUE)
        seq = tables.insert(tx, request, group, baggage, self._world.clock.now_ms())
        if seq is not None:
            job = Job(
                seq,
                request.messageReceiptId,
                request.queue,
                group,
                request.function_id,
                request.namespace,
                request.traceparent,
                baggage,
                data=request.data,
                has_data=True,
            )
            tx.on_commit(partial(self.dispatcher.accepted, job))
        return {"messageReceiptId": request.messageReceiptId}


def install(bus: Bus, store: Store, world: World) -> QueueProvider:
    """Provide queues on `bus`, over the tables of `iii_queue.tables.FAMILY`."""
    return QueueProvider(bus, store, world)


def group_of(config: QueueConfig, queue: str, data: Json) -> str | None:
    """The group of a job; raises `message_group_missing`. Jobs of a standard queue have none."""
    if config.type != "fifo":
        return None
    name = config.message_group_field
    value = cast("dict[str, Any]", data).get(name or "") if isinstance(data, dict) else None
    if value is None:
        raise BusError("message_group_missing", f"FIFO queue '{queue}' requires field '{name}' in data")
    return value if isinstance(value, str) else stored(value)


def _worth_carrying(request: EnqueueRequest) -> str | None:
    """The baggage of a job. The engine names the called function anew at every call, so that alone says nothing."""
    baggage = request.baggage
    if not baggage or (request.traceparent is None and "," not in baggage and baggage.startswith("iii.function.id=")):
        return None
    return baggage
