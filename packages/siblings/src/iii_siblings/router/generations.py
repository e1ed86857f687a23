"""`router::chat`, `router::complete` and `router::abort`: the running streams (siblings 5.1, 5.2, 5.6)."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from iii_contracts import router as contract
from iii_contracts.provider import AbortRequest
from iii_kit.bus import Bus, Invocation, Json, Sink
from iii_kit.errors import BusError, CodedError
from iii_kit.world import World
from iii_siblings.router import outcome as ends
from iii_siblings.router.catalogue import output_budget, supports
from iii_siblings.router.providers import Providers
from iii_siblings.router.relay import CallerSink, Plan, Relay
from iii_siblings.router.request import Asked, read_request
from iii_siblings.router.watch import StreamWatch

MAX_STREAMS = 1_000
"""Generations that run at the same time."""
ABORT_WAIT_S = 3.0
"""How long an abort waits for the stream to be over."""


class NobodyListens:
    """The sink of a generation that is answered as a whole."""

    async def send(self, item: str | bytes) -> None:
        """Drop one frame."""

    async def close(self) -> None:
        """Nothing to end."""


class Generations:
    """All running streams, by request id."""

    def __init__(self, bus: Bus, world: World, providers: Providers) -> None:
        self._bus = bus
        self._world = world
        self._providers = providers
        self._running: dict[str, Relay] = {}
        self._watch = StreamWatch(world.clock)
        self._draining = False

    async def chat(self, data: Any, _: Invocation) -> Json:
        """Serve `router::chat`."""
        sink = await self._sink(data)
        asked: Asked | None = None
        try:
            asked = read_request(contract.CHAT, data)
            relay, request_id = self._prepared(asked, sink)
            return await self._run(relay, request_id)
        except CodedError as error:
            await self._refuse(sink, data, error)
            raise
        finally:
            await sink.close()

    async def complete(self, data: Any, _: Invocation) -> Json:
        """Serve `router::complete`."""
        asked = read_request(contract.COMPLETE, data)
        relay, request_id = self._prepared(asked, NobodyListens())
        response = await self._run(relay, request_id)
        answer = {"message": relay.message, "provider": response["provider"], "model": response["model"]}
        return answer | ({"usage": response["usage"]} if "usage" in response else {})

    async def abort(self, request: AbortRequest, _: Invocation) -> Json:
        """Serve `router::abort`; returns once the stream is over, so that its id is free again."""
        running = self._running.get(request.request_id)
        if running is None:
            return {"aborted": False}
        aborted = running.interrupt("abort")
        over = asyncio.create_task(running.over.wait())
        limit = asyncio.create_task(self._world.clock.sleep(ABORT_WAIT_S))
        await asyncio.wait({over, limit}, return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        limit.cancel()
        return {"aborted": aborted}

    async def drain(self) -> None:
        """Take no more requests and end the running streams with a transient error."""
        self._draining = True
        running = list(self._running.values())
        for relay in running:
            relay.interrupt("drain")
        for relay in running:
            await relay.over.wait()
        self._watch.close()

    async def _sink(self, data: Any) -> Sink:
        ref = cast("dict[str, Any]", data).get("writer_ref") if isinstance(data, dict) else None
        if ref is None:
            raise CodedError(contract.INVALID, "missing field `writer_ref`")
        try:
            return await self._bus.sink(ref)
        except (BusError, KeyError, TypeError, ValueError) as error:
            text = error.message if isinstance(error, BusError) else "it is not the write end of a channel"
            raise CodedError(contract.INVALID, f"`writer_ref`: {text}") from error

    def _prepared(self, asked: Asked, sink: CallerSink) -> tuple[Relay, str]:
        request_id = asked.data.get("request_id") or self._world.ids.uuid()
        if request_id in self._running:
            raise CodedError(contract.IN_PROGRESS, f"request {request_id} is still streaming")
        if self._draining or len(self._running) >= MAX_STREAMS:
            why = "the router is stopping" if self._draining else f"{MAX_STREAMS} generations are running"
            raise CodedError(contract.CAPACITY, why)
        return Relay(self._bus, self._world, self._watch, sink, self._plan(asked, request_id)), request_id

    def _plan(self, asked: Asked, request_id: str) -> Plan:
        providers = self._providers
        provider = providers.route(asked.model, asked.provider).provider
        row = providers.registry.get(provider)
        own = providers.settings.provider(provider)
        if not providers.registry.configured(row, own):
            where = f"providers.{provider}.api_key in the configuration entry llm-router"
            where = f"{row.key_variable} or {where}" if row.key_variable else where
            raise CodedError(contract.NOT_CONFIGURED, f"provider {provider} has no key: set {where}")
        model = providers.catalogue.get(provider, asked.model)
        if asked.data.get("response_format") and model is not None and not supports(model, "structured_output"):
            text = f"model {asked.model} of provider {provider} has no structured output"
            raise CodedError(contract.STRUCTURED_UNSUPPORTED, text)
        limits = providers.settings.settings
        configured = providers.configured_budget(row, own)
        budget = output_budget(model, asked.max_output_tokens, configured, limits.output_token_max)
        payload = asked.for_provider(provider, model, request_id, budget)
        return Plan(provider, asked.model, request_id, payload, (model or {}).get("pricing"), limits)

    async def _run(self, relay: Relay, request_id: str) -> Json:
        self._running[request_id] = relay
        provider = relay.provider
        try:
            response = await relay.run()
        except CodedError as error:
            if error.code == contract.UNAVAILABLE:
                self._providers.mark(provider, available=False)
            raise
        finally:
            del self._running[request_id]
            relay.over.set()
        self._providers.mark(provider, available=True)
        return response

    async def _refuse(self, sink: Sink, data: Any, error: CodedError) -> None:
        """The one frame of a stream that does not begin."""
        fields = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        provider, model = (str(fields.get(name) or "") for name in ("provider", "model"))
        base = ends.assistant(provider, model, self._world.clock.now_ms())
        try:
            await sink.send(ends.frame("error", ends.error_message(base, error.message, "permanent")))
        except BusError:
            pass
