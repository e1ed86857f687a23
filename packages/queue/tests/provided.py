"""A queue provider on the embedded engine, and a recording function, for the tests of this package."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from iii_contracts.spec import FunctionSpec
from iii_embedded.local_bus import LocalBus
from iii_kit.bus import Invocation
from iii_kit.world import World
from iii_queue import QueueProvider
from iii_testing.embedded import Embedded, embedded

FIFO = {"type": "fifo", "message_group_field": "g"}


class Queues:
    """The stack under test: `bus` belongs to the worker that enqueues and serves."""

    provider: QueueProvider
    bus: LocalBus

    def __init__(self, stack: Embedded) -> None:
        self.stack = stack
        self.begin()

    def begin(self) -> None:
        self.provider = self.stack.queue
        self.bus = self.stack.attach("tests")

    async def crash_and_restart(self) -> None:
        self.stack.crash()
        await self.stack.restart()
        self.begin()

    async def define(self, queue: str = "q", **config: Any) -> bool:
        answer = await self.bus.call("queue::define", {"queue": queue, "config": {**FIFO, **config}})
        return answer["changed"]

    def serve(self, run: Callable[[Any], Awaitable[Any]], function_id: str = "t::fn") -> None:
        async def handler(request: Any, _: Invocation) -> Any:
            return await run(request)

        self.bus.serve(FunctionSpec(function_id, "of a test", None, None, "invalid"), handler)

    def rows(self, columns: str = "state, attempt, deaths") -> list[tuple[Any, ...]]:
        return self.stack.store.peek(
            lambda reader: reader.execute(f"SELECT {columns} FROM jobs ORDER BY seq").fetchall()
        )


@asynccontextmanager
async def queues(world: World | None = None, *, inline: bool = False) -> AsyncGenerator[Queues]:
    async with embedded(world, inline=inline) as stack:
        yield Queues(stack)
