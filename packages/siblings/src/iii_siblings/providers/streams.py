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


class _Stream:
    """One running stream: the task of its call, which `stop` interrupts."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.stopped = False
        self.over = asyncio.Event()

    def stop(self) -> None:
        """Interrupt what it waits for; once."""
        if not self.stopped and not self.over.is_set():
            self.stopped = True
            self.task.cancel()


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
        self._running: dict[str, set[_Stream]] = {}

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
        running = list(self._running.get(request.request_id, ()))
        for stream in running:
            stream.stop()
        return {"aborted": bool(running)}

    async def drain(self) -> None:
        """Stop every stream."""
        running = [stream for streams in self._running.values() for stream in streams]
        for stream in running:
            stream.stop()
        for stream in running:
            await stream.over.wait()

    async def _run(self, request: dict[str, Any], emitter: Emitter) -> None:
        key = str(request.get("resolution_key") or "")
        stream = _Stream(cast("asyncio.Task[Any]", asyncio.current_task()))
        self._running.setdefault(key, set()).add(stream)
        alive = asyncio.create_task(self._keep_alive(emitter, stream)) if self._pings else None
        try:
            await self._generate(request, emitter)
        except asyncio.CancelledError:
            if not stream.stopped:
                raise
            stream.task.uncancel()
            if not emitter.ended:
                await emitter.aborted()
        finally:
            if alive is not None:
                alive.cancel()
            stream.over.set()
            self._running[key].discard(stream)
            if not self._running[key]:
                del self._running[key]

    async def _keep_alive(self, emitter: Emitter, stream: _Stream) -> None:
        """Ping a silent stream, and stop it when its reader is gone."""
        seen = -1
        while not emitter.ended:
            if emitter.sent == seen:
                try:
                    await emitter.ping()
                except BusError:
                    stream.stop()
                    return
            seen = emitter.sent
            await self._world.clock.sleep(PING_EVERY_S)

    def _checked(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise CodedError(INVALID, f"the request must be an object, got {shown(data)}")
        request = cast("dict[str, Any]", data)
        problem = self._spec.check(request)
        if problem is not None:
            raise CodedError(INVALID, problem)
        return request
