"""A provider whose models run on a server, as a worker of the bus (siblings 6): what `anthropic` and `openai` share.

Key and base URL come from the router's configuration or from the environment, and from nowhere else; they appear in no
log, error or message.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol

from iii_contracts import router as contract
from iii_contracts.generation import HandCheckedSpec
from iii_contracts.provider import UNAVAILABLE, ProviderFunctions
from iii_kit.bus import Bus, Invocation, Json
from iii_kit.encoding import encode
from iii_kit.errors import CodedError
from iii_kit.world import Ids, World
from iii_siblings.providers.discovery import Discovery, E, Source
from iii_siblings.providers.emitter import Emitter
from iii_siblings.providers.event_stream import EventStream, EventTooLarge
from iii_siblings.providers.failure import UpstreamFailure
from iii_siblings.providers.link import Refresher, RouterLink, Secret
from iii_siblings.providers.streams import Streams
from iii_siblings.providers.upstream import Manners, Upstream
from iii_siblings.providers.urls import BadUrl


class AnswerStream(Protocol):
    """Turns the events of one answer into frames."""

    over: bool
    """True after the closing event: nothing more is to be read."""

    async def take(self, data: bytes) -> None:
        """Take the data of one event. Raises `UpstreamFailure`."""
        ...

    async def finish(self) -> None:
        """End the answer. Raises `UpstreamFailure` when the server did not say that it was whole."""
        ...


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as it is sent, and how its answer is read."""

    body: dict[str, Any]
    reader: Callable[[Emitter, Ids], AnswerStream]
    warnings: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Api(Generic[E]):
    """One provider: its names, and the rules of its API."""

    display_name: str
    key_variable: str
    url_variable: str
    functions: ProviderFunctions
    manners: Manners
    endpoint: Callable[[str | None], E]
    """The endpoint of a base URL, or the official one. Raises `BadUrl`."""
    entries: Callable[[Any, E, Mapping[str, str]], list[dict[str, Any]]]
    """The catalogue entries of a list of models."""
    outgoing: Callable[[dict[str, Any], E, Mapping[str, str]], Outgoing]

    @property
    def provider(self) -> str:
        """The id of the provider."""
        return self.manners.provider


class RemoteProvider(Generic[E]):
    """The installed provider."""

    def __init__(self, bus: Bus, world: World, api: Api[E], environ: Mapping[str, str], read_timeout_s: float) -> None:
        self._api = api
        self._world = world
        self._environ = environ
        self._upstream = Upstream(api.manners, world.clock, read_timeout_s)
        self._link = RouterLink(bus, world, api.provider)
        self._discovery = Discovery(self._link, world.clock, self._source, self._models)
        self._refresher = Refresher(bus, world, self._link, self._refresh)
        functions = api.functions
        spec = functions.stream
        assert isinstance(spec, HandCheckedSpec)
        self._streams = Streams(bus, world, api.provider, spec, self._generate)
        bus.serve(functions.stream, self._streams.stream)
        bus.serve(functions.abort, self._streams.abort)
        bus.serve(functions.refresh_models, self._refresh_models)
        bus.serve(functions.on_router_ready, self._refresher.on_router_ready)
        bus.bind(contract.READY.id, functions.on_router_ready.id, {})

    async def ready(self) -> None:
        """Return when the router knows this provider and, unless its server is slow, its models."""
        await self._refresher.ready()

    async def drain(self) -> None:
        """End what streams and close the connections."""
        await self._discovery.drain()
        await self._streams.drain()
        await self._upstream.close()

    # -- registration and discovery

    async def _refresh(self) -> None:
        own = self._environ.get(self._api.url_variable)
        await self._register(own)
        endpoint = (await self._source()).endpoint
        if endpoint is not None and endpoint.needs_key != self._needs_key(own):
            await self._register((await self._link.resolve()).api_url)
        await self._discovery.begin()

    async def _register(self, api_url: str | None) -> None:
        described: dict[str, Any] = {"display_name": self._api.display_name, "supports_model_listing": True}
        own = (self._environ.get(self._api.url_variable) or "").strip()
        if own:
            described["defaults"] = {"api_url": own}
        if self._needs_key(api_url):
            described["credential_env_var"] = self._api.key_variable
        await self._link.register(described)

    def _needs_key(self, api_url: str | None) -> bool:
        try:
            return self._api.endpoint(api_url).needs_key
        except BadUrl:
            return True

    async def _source(self) -> Source[E]:
        """Where requests go, and the key."""
        resolved = await self._link.resolve()
        key = resolved.key if resolved.key.text else Secret(self._environ.get(self._api.key_variable, "").strip())
        try:
            return Source(self._api.endpoint(resolved.api_url or self._environ.get(self._api.url_variable)), key)
        except BadUrl:
            return Source(None, key)

    async def _models(self, endpoint: E, key: Secret) -> list[dict[str, Any]]:
        listing = await self._upstream.models(endpoint.models_url, key)
        return self._api.entries(listing, endpoint, self._environ)

    async def _refresh_models(self, _: Any, __: Invocation) -> Json:
        self._link.forget_resolved()
        try:
            return {"ok": True, "count": await self._discovery.asked()}
        except UpstreamFailure as failure:
            raise CodedError(UNAVAILABLE, failure.text) from None

    # -- generations

    async def _generate(self, request: dict[str, Any], emitter: Emitter) -> None:
        await emitter.start()
        try:
            await self._answer(request, emitter)
        except UpstreamFailure as failure:
            await emitter.error(failure.kind, failure.text, failure.retry_after_ms)
            if failure.kind == "auth_expired":
                self._link.forget_resolved()
                await self._discovery.report(failure)

    async def _answer(self, request: dict[str, Any], emitter: Emitter) -> None:
        source = await self._source()
        if source.endpoint is None:
            text = f"the base URL of provider {self._api.provider} is not an http or https URL"
            raise UpstreamFailure("permanent", text)
        if source.usable is None:
            raise UpstreamFailure("permanent", self._not_configured)
        outgoing = self._api.outgoing(request, source.endpoint, self._environ)
        body = encode(outgoing.body)
        if outgoing.warnings:
            emitter.message["warnings"] = outgoing.warnings
        stream = outgoing.reader(emitter, self._world.ids)
        async with self._upstream.stream(source.endpoint.url, source.key, body) as chunks:
            await feed(self._api.provider, stream, chunks)
            await stream.finish()

    @property
    def _not_configured(self) -> str:
        provider, variable = self._api.provider, self._api.key_variable
        return f"provider {provider} not configured (no api_key in the llm-router entry and {variable} unset)"


async def feed(provider: str, stream: AnswerStream, chunks: AsyncIterator[bytes]) -> None:
    """Parse bytes into events for `stream`, until it is over or the bytes end. Raises `UpstreamFailure`."""
    events = EventStream()
    try:
        async for chunk in chunks:
            for data in events.feed(chunk):
                await stream.take(data)
            if stream.over:
                return
    except EventTooLarge as error:
        raise UpstreamFailure("permanent", f"{provider} sent too large an event: {error}") from None
    for data in events.flush():
        await stream.take(data)
