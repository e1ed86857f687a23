"""The running streams of one provider: signs of life, aborts, callers that leave (siblings 6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

from iii_contracts.generation import HandCheckedSpec
from iii_contracts.problems import shown
from iii_contracts.provider import INVALID, AbortRequest
from iii_kit.bus import Bus, Invocation, Json
from iii_kit.errors import BusError, CodedError
from iii_kit.world import World
from iii_siblings.providers.emitter import Emitter

PING_EVERY_S = 15.0
"""A stream is never silent for longer, unless its provider is told to be."""

Generate = Callable[[dict[str, Any], Emitter], Coroutine[Any, Any, None]]
"""Generates one answer into an emitter. It ends the answer, or returns to leave the stream without an end."""


class Streams:
    """Serves `provider::<id>::stream` and `provider::<id>::abort` around one `Generate`."""

    def __init__(
        self, bus: Bus, world: World, provider: str, spec: HandCheckedSpec, generate: Generate, *, pings: bool = True
    ) -> None:
        self._bus = bus
        self._world = world
        self._provider = provider
        self._spec = spec
        self._generate = generate
        self._pings = pings
        self._running: dict[str, set[asyncio.Task[None]]] = {}

    async def stream(self, data: Any, _: Invocation) -> Json:
        """Serve one stream; answers when its terminal frame is out, or its caller has left."""
        request = self._checked(data)
        sink = await self._bus.sink(request["writer_ref"])
        emitter = Emitter(sink, self._provider, request["model"], self._world.clock.now_ms())
        try:
            await self._run(request, emitter)
        except BusError as error:
            if error.code != "channel_closed":
                raise
        finally:
            await sink.close()
        return {"ok": emitter.ended}

    async def abort(self, request: AbortRequest, _: Invocation) -> Json:
        """Stop the streams of one request."""
        running = self._running.get(request.request_id, set())
        for task in running:
            task.cancel()
        return {"aborted": bool(running)}

    async def drain(self) -> None:
        """Stop every stream."""
        tasks = [task for running in self._running.values() for task in running]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, request: dict[str, Any], emitter: Emitter) -> None:
        key = str(request.get("resolution_key") or "")
        task = asyncio.create_task(self._generate(request, emitter))
        self._running.setdefault(key, set()).add(task)
        alive = asyncio.create_task(self._keep_alive(emitter)) if self._pings else None
        try:
            await asyncio.wait({task} if alive is None else {task, alive}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        finally:
            task.cancel()
            if alive is not None:
                alive.cancel()
            self._running[key].discard(task)
            if not self._running[key]:
                del self._running[key]
        if task.cancelled() and not emitter.ended:
            await emitter.aborted()
        elif not task.cancelled():
            task.result()

    async def _keep_alive(self, emitter: Emitter) -> None:
        """Ping a silent stream; returns when its reader is gone."""
        seen = -1
        while True:
            seen = emitter.sent
            await self._world.clock.sleep(PING_EVERY_S)
            if emitter.sent == seen and not emitter.ended:
                try:
                    await emitter.ping()
                except BusError:
                    return

    def _checked(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise CodedError(INVALID, f"the request must be an object, got {shown(data)}")
        request = cast("dict[str, Any]", data)
        problem = self._spec.check(request)
        if problem is not None:
            raise CodedError(INVALID, problem)
        return request
