"""The provider `openai` as a worker of the bus (siblings 6, 8): one API in two modes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from iii_contracts.provider import OPENAI
from iii_kit.bus import Bus
from iii_kit.world import Ids, World
from iii_siblings.providers.emitter import Emitter
from iii_siblings.providers.link import Secret
from iii_siblings.providers.openai.body import prepared
from iii_siblings.providers.openai.catalogue import entries
from iii_siblings.providers.openai.chat_body import chat_body
from iii_siblings.providers.openai.chat_stream import ChatStream
from iii_siblings.providers.openai.endpoint import Endpoint, endpoint
from iii_siblings.providers.openai.errors import kind_of
from iii_siblings.providers.openai.responses_body import responses_body
from iii_siblings.providers.openai.responses_stream import ResponsesStream
from iii_siblings.providers.remote import AnswerStream, Api, Outgoing, RemoteProvider
from iii_siblings.providers.upstream import READ_TIMEOUT_S, Manners

PROVIDER = "openai"


def install(
    bus: Bus, world: World, environ: Mapping[str, str] | None = None, *, read_timeout_s: float = READ_TIMEOUT_S
) -> RemoteProvider[Endpoint]:
    """Register the provider on `bus`. `environ` is where its variables lie; the process's by default."""
    return RemoteProvider(bus, world, API, os.environ if environ is None else environ, read_timeout_s)


def _headers(key: Secret) -> dict[str, str]:
    return {"authorization": f"Bearer {key.text}"} if key.text else {}


def _entries(listing: Any, target: Endpoint, _: Mapping[str, str]) -> list[dict[str, Any]]:
    return entries(PROVIDER, listing, target)


def _outgoing(request: dict[str, Any], target: Endpoint, environ: Mapping[str, str]) -> Outgoing:
    ready = prepared(request, target, environ)
    chat = target.mode == "chat"
    body = chat_body(ready) if chat else responses_body(ready)

    def reader(emitter: Emitter, ids: Ids) -> AnswerStream:
        return (ChatStream if chat else ResponsesStream)(emitter, ready.names, ids)

    return Outgoing(body, reader, ready.warnings)


API = Api(
    display_name="OpenAI",
    key_variable="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    functions=OPENAI,
    manners=Manners(PROVIDER, _headers, kind_of),
    endpoint=endpoint,
    entries=_entries,
    outgoing=_outgoing,
)
