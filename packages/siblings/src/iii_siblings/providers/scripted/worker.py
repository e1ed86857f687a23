"""The scripted provider as a worker of the bus (siblings 6, 17.4).

It offers the model `demo` only while no other provider has a key or an endpoint; scripts of `provider_options` run
always. Nothing outside this package knows that it exists.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from iii_contracts import router as contract
from iii_contracts.generation import HandCheckedSpec
from iii_contracts.provider import INVALID, SCRIPTED
from iii_kit.bus import Bus, Invocation, Json
from iii_kit.encoding import decode
from iii_kit.errors import CodedError
from iii_kit.world import World
from iii_siblings.providers.emitter import Emitter
from iii_siblings.providers.link import Refresher, RouterLink
from iii_siblings.providers.scripted.demo import MODEL, demo_step
from iii_siblings.providers.scripted.player import Player
from iii_siblings.providers.scripted.script import Script, read_script, step_of
from iii_siblings.providers.streams import Streams

PROVIDER = "scripted"
WORD_DELAY_S = 0.012
"""Pause after each word of the demo, so that a newcomer sees it stream."""

DEMO_MODEL: dict[str, Any] = {
    "id": MODEL,
    "provider": PROVIDER,
    "display_name": "Demo (scripted, no key needed)",
    "context_window": 200_000,
    "max_output_tokens": 8_192,
    "supports_tools": True,
}


def install(bus: Bus, world: World) -> ScriptedProvider:
    """Register the scripted provider on `bus`."""
    return ScriptedProvider(bus, world)


class ScriptedProvider:
    """The installed provider."""

    def __init__(self, bus: Bus, world: World) -> None:
        self._bus = bus
        self._world = world
        spec = SCRIPTED.stream
        assert isinstance(spec, HandCheckedSpec)
        self._streams = Streams(bus, world, PROVIDER, spec, self._generate, pings=False)
        self._link = RouterLink(bus, world, PROVIDER)
        self._refresher = Refresher(bus, world, self._link, self._refresh)
        bus.serve(SCRIPTED.stream, self._streams.stream)
        bus.serve(SCRIPTED.abort, self._streams.abort)
        bus.serve(SCRIPTED.refresh_models, self._refresh_models)
        bus.serve(SCRIPTED.on_router_ready, self._refresher.on_router_ready)
        bus.bind(contract.READY.id, SCRIPTED.on_router_ready.id, {})
        bus.bind(contract.PROVIDER_CHANGED.id, SCRIPTED.refresh_models.id, {})

    async def ready(self) -> None:
        """Return when the router knows this provider."""
        await self._refresher.ready()

    async def drain(self) -> None:
        """End what streams."""
        await self._streams.drain()

    async def _refresh(self) -> None:
        await self._link.register({"display_name": "Scripted", "supports_model_listing": True})
        count = await self._offer()
        await self._link.status(catalog_state="ready" if count else "empty", credential_state="external")

    async def _offer(self) -> int:
        """Tell the router the models: the demo, unless another provider is configured."""
        providers = (await self._bus.call(contract.PROVIDER_LIST.id, {}))["providers"]
        others = any(row["configured"] for row in providers if row["id"] != PROVIDER)
        return await self._link.reconcile([] if others else [DEMO_MODEL])

    async def _refresh_models(self, _: Any, __: Invocation) -> Json:
        return {"ok": True, "count": await self._offer() if self._link.registered else 0}

    async def _generate(self, request: dict[str, Any], emitter: Emitter) -> None:
        messages: list[dict[str, Any]] = request["messages"]
        tools: list[dict[str, Any]] = request.get("tools") or []
        offered = {str(tool["name"]) for tool in tools}
        script = await self._script(request)
        if script is None:
            index = sum(message.get("role") == "assistant" for message in messages)
            step, delay = demo_step(messages, offered), WORD_DELAY_S
        else:
            index, step = step_of(script, messages)
            delay = 0.0
        await Player(self._world.clock, emitter, offered, index).play(step, delay)

    async def _script(self, request: dict[str, Any]) -> Script | None:
        """The script of a request; None for the demo, which writes its own."""
        options = request.get("provider_options")
        if options:
            return read_script(options, "provider_options.scripted")
        entry: dict[str, Any] = request.get("model_meta") or {}
        if entry.get("script"):
            named = str(entry["script"])
            return read_script(await asyncio.to_thread(_read_file, named), named)
        if request["model"] == MODEL:
            return None
        raise CodedError(INVALID, f"model {request['model']} has no script: give one in provider_options.scripted")


def _read_file(name: str) -> Any:
    try:
        return decode(Path(name).read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise CodedError(INVALID, f"script {name} cannot be read: {type(error).__name__}") from None
