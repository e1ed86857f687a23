"""The provider `openai` as a worker of the bus (siblings 6, 8): registration, discovery, generations.

Key and base URL come from the router's configuration or from `OPENAI_API_KEY` and `OPENAI_BASE_URL`, and from nowhere
else; they appear in no log, error or message.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

from iii_contracts import router as contract
from iii_contracts.generation import HandCheckedSpec
from iii_contracts.messages import RETRYABLE
from iii_contracts.provider import OPENAI, UNAVAILABLE
from iii_kit.bus import Bus, Invocation, Json
from iii_kit.encoding import encode
from iii_kit.errors import BusError, CodedError
from iii_kit.logs import logger
from iii_kit.world import World
from iii_siblings.providers.emitter import Emitter
from iii_siblings.providers.event_stream import EventStream, EventTooLarge
from iii_siblings.providers.failure import UpstreamFailure
from iii_siblings.providers.link import Refresher, RouterLink
from iii_siblings.providers.openai.body import Prepared, prepared
from iii_siblings.providers.openai.catalogue import entries
from iii_siblings.providers.openai.chat_body import chat_body
from iii_siblings.providers.openai.chat_stream import ChatStream
from iii_siblings.providers.openai.endpoint import BadUrl, Endpoint, endpoint
from iii_siblings.providers.openai.responses_body import responses_body
from iii_siblings.providers.openai.responses_stream import ResponsesStream
from iii_siblings.providers.openai.upstream import PROVIDER, READ_TIMEOUT_S, Upstream
from iii_siblings.providers.streams import Streams

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
NOT_CONFIGURED = f"provider openai not configured (no api_key in the llm-router entry and {KEY_VARIABLE} unset)"
FIRST_DISCOVERY_S = 1.0
"""How long the start waits for the first list of models."""
FIRST_RETRY_S = 5.0
LONGEST_RETRY_S = 300.0

_log = logger(__name__)


def install(
    bus: Bus, world: World, environ: Mapping[str, str] | None = None, *, read_timeout_s: float = READ_TIMEOUT_S
) -> OpenAiProvider:
    """Register the provider on `bus`. `environ` is where its variables lie; the process's by default."""
    return OpenAiProvider(bus, world, os.environ if environ is None else environ, read_timeout_s)


class OpenAiProvider:
    """The installed provider."""

    def __init__(self, bus: Bus, world: World, environ: Mapping[str, str], read_timeout_s: float) -> None:
        self._world = world
        self._environ = environ
        self._upstream = Upstream(world.clock, read_timeout_s)
        self._link = RouterLink(bus, world, PROVIDER)
        self._refresher = Refresher(bus, world, self._link, self._refresh)
        self._retrying: asyncio.Task[None] | None = None
        self._failed = False
        spec = OPENAI.stream
        assert isinstance(spec, HandCheckedSpec)
        self._streams = Streams(bus, world, PROVIDER, spec, self._generate)
        bus.serve(OPENAI.stream, self._streams.stream)
        bus.serve(OPENAI.abort, self._streams.abort)
        bus.serve(OPENAI.refresh_models, self._refresh_models)
        bus.serve(OPENAI.on_router_ready, self._refresher.on_router_ready)
        bus.bind(contract.READY.id, OPENAI.on_router_ready.id, {})

    async def ready(self) -> None:
        """Return when the router knows this provider and, unless its server is slow, its models."""
        await self._refresher.ready()

    async def drain(self) -> None:
        """End what streams and close the connections."""
        if self._retrying is not None:
            self._retrying.cancel()
        await self._streams.drain()
        await self._upstream.close()

    # -- registration and discovery

    async def _refresh(self) -> None:
        await self._register(self._environ.get(URL_VARIABLE))
        target, _ = await self._target()
        if target is not None and target.needs_key != self._needs_key(self._environ.get(URL_VARIABLE)):
            await self._register((await self._link.resolve()).api_url)
        if self._retrying is not None:
            self._retrying.cancel()
        tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._retrying = asyncio.create_task(self._discover_and_retry(tried))
        limit = asyncio.create_task(self._world.clock.sleep(FIRST_DISCOVERY_S))
        await asyncio.wait({tried, limit}, return_when=asyncio.FIRST_COMPLETED)
        limit.cancel()

    async def _register(self, api_url: str | None) -> None:
        described: dict[str, Any] = {"display_name": "OpenAI", "supports_model_listing": True}
        own = (self._environ.get(URL_VARIABLE) or "").strip()
        if own:
            described["defaults"] = {"api_url": own}
        if self._needs_key(api_url):
            described["credential_env_var"] = KEY_VARIABLE
        await self._link.register(described)

    def _needs_key(self, api_url: str | None) -> bool:
        try:
            return endpoint(api_url).needs_key
        except BadUrl:
            return True

    async def _discover_and_retry(self, tried: asyncio.Future[None]) -> None:
        """Discover until it worked or cannot; a server that is away for now is asked again later.

        `tried` is set after the first attempt.
        """
        pause = FIRST_RETRY_S
        while True:
            try:
                await self._discover()
                return
            except UpstreamFailure as failure:
                _log.info("models_not_listed", provider=PROVIDER, kind=failure.kind, text=failure.text)
            except BusError as error:
                _log.info("models_not_told", provider=PROVIDER, code=error.code)
            finally:
                if not tried.done():
                    tried.set_result(None)
            await self._world.clock.sleep(pause)
            pause = min(LONGEST_RETRY_S, pause * 2)

    async def _discover(self) -> int:
        """Tell the router what the server lists; without a usable key, nothing. Raises `UpstreamFailure`."""
        target, key = await self._target()
        if target is None or (target.needs_key and not key):
            await self._link.status(catalog_state="empty", credential_state="missing")
            return await self._link.reconcile([])
        try:
            listing = await self._upstream.models(target.models_url, key)
        except UpstreamFailure as failure:
            if failure.kind in RETRYABLE:
                await self._report(failure, catalog_state="error")
                raise
            credential = "missing" if failure.kind == "auth_expired" else "ready"
            await self._report(failure, catalog_state="empty", credential_state=credential)
            return await self._link.reconcile([])
        count = await self._link.reconcile(entries(PROVIDER, listing, target))
        state = "ready" if count else "empty"
        await self._link.status(catalog_state=state, credential_state="ready", clear_failure=True)
        return count

    async def _refresh_models(self, _: Any, __: Invocation) -> Json:
        self._link.forget_resolved()
        try:
            return {"ok": True, "count": await self._discover()}
        except UpstreamFailure as failure:
            raise CodedError(UNAVAILABLE, failure.text) from None

    async def _target(self) -> tuple[Endpoint | None, str]:
        """Where requests go, and the key; no endpoint when the URL is none."""
        resolved = await self._link.resolve()
        key = resolved.key or self._environ.get(KEY_VARIABLE, "").strip()
        try:
            return endpoint(resolved.api_url or self._environ.get(URL_VARIABLE)), key
        except BadUrl:
            return None, key

    async def _report(self, failure: UpstreamFailure, **states: str) -> None:
        shown = {
            "code": contract.CODE_OF_KIND[failure.kind],
            "kind": failure.kind,
            "message": failure.text,
            "retryable": failure.kind in RETRYABLE,
            "attempts": 1,
            "provider": PROVIDER,
        }
        self._failed = True
        try:
            await self._link.status(failure=shown, **states)
        except BusError as error:
            _log.debug("status_not_told", provider=PROVIDER, code=error.code)

    # -- generations

    async def _generate(self, request: dict[str, Any], emitter: Emitter) -> None:
        await emitter.start()
        try:
            target, key = await self._target()
            if target is None:
                raise UpstreamFailure("permanent", "the base URL of provider openai is not an http or https URL")
            if target.needs_key and not key:
                raise UpstreamFailure("permanent", NOT_CONFIGURED)
            await self._answer(prepared(request, target, self._environ), key, emitter)
        except UpstreamFailure as failure:
            await emitter.error(failure.kind, failure.text, failure.retry_after_ms)
            if failure.kind == "auth_expired":
                self._link.forget_resolved()
                await self._report(failure)

    async def _answer(self, request: Prepared, key: str, emitter: Emitter) -> None:
        chat = request.endpoint.mode == "chat"
        body = encode(chat_body(request) if chat else responses_body(request))
        if request.warnings:
            emitter.message["warnings"] = request.warnings
        stream = (ChatStream if chat else ResponsesStream)(emitter, request.names, self._world.ids)
        async with self._upstream.stream(request.endpoint.url, key, body) as chunks:
            await feed(stream, chunks)
            await stream.finish()


async def feed(stream: ChatStream | ResponsesStream, chunks: AsyncIterator[bytes]) -> None:
    """Parse bytes into events for `stream`, until it is over or the bytes end. Raises `UpstreamFailure`."""
    events = EventStream()
    try:
        async for chunk in chunks:
            for data in events.feed(chunk):
                await stream.take(data)
            if stream.over:
                return
    except EventTooLarge as error:
        raise UpstreamFailure("permanent", f"openai sent too large an event: {error}") from None
    for data in events.flush():
        await stream.take(data)
