"""The provider `anthropic` as a worker of the bus (siblings 6, 7)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from iii_contracts.provider import ANTHROPIC
from iii_kit.bus import Bus
from iii_kit.world import Ids, World
from iii_siblings.providers.anthropic.body import messages_body
from iii_siblings.providers.anthropic.catalogue import entries
from iii_siblings.providers.anthropic.conversation import PROVIDER
from iii_siblings.providers.anthropic.endpoint import Endpoint, endpoint
from iii_siblings.providers.anthropic.errors import kind_of
from iii_siblings.providers.anthropic.messages_stream import MessagesStream
from iii_siblings.providers.anthropic.prices import price_list
from iii_siblings.providers.emitter import Emitter
from iii_siblings.providers.function_names import FunctionNames
from iii_siblings.providers.link import Secret
from iii_siblings.providers.remote import AnswerStream, Api, Outgoing, RemoteProvider
from iii_siblings.providers.upstream import READ_TIMEOUT_S, Manners

VERSION = "2023-06-01"


def install(
    bus: Bus, world: World, environ: Mapping[str, str] | None = None, *, read_timeout_s: float = READ_TIMEOUT_S
) -> RemoteProvider[Endpoint]:
    """Register the provider on `bus`. `environ` is where its variables lie; the process's by default."""
    return RemoteProvider(bus, world, API, os.environ if environ is None else environ, read_timeout_s)


def _headers(key: Secret) -> dict[str, str]:
    version = {"anthropic-version": VERSION}
    if not key.text:
        return version
    return version | ({"authorization": f"Bearer {key.text}"} if key.is_token else {"x-api-key": key.text})


def _entries(listing: Any, _: Endpoint, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    return entries(PROVIDER, listing, price_list(environ))


def _outgoing(request: dict[str, Any], _: Endpoint, environ: Mapping[str, str]) -> Outgoing:
    tools: list[dict[str, Any]] = request.get("tools") or []
    names = FunctionNames([str(tool["name"]) for tool in tools])
    warnings: list[str] = []
    body = messages_body(request, names, environ, warnings)

    def reader(emitter: Emitter, ids: Ids) -> AnswerStream:
        return MessagesStream(emitter, names, ids)

    return Outgoing(body, reader, warnings)


API = Api(
    display_name="Anthropic",
    key_variable="ANTHROPIC_API_KEY",
    url_variable="ANTHROPIC_BASE_URL",
    functions=ANTHROPIC,
    manners=Manners(PROVIDER, _headers, kind_of),
    endpoint=endpoint,
    entries=_entries,
    outgoing=_outgoing,
)
