"""Router and providers on the real embedded engine and a real database, for tests of generations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iii_embedded import modules
from iii_embedded.engine import Engine, EngineSettings
from iii_kit.bus import Bus, Opts
from iii_kit.encoding import decode
from iii_kit.errors import BusError
from iii_kit.world import World
from iii_siblings import router
from iii_siblings.providers import anthropic, openai, scripted
from iii_siblings.providers.remote import RemoteProvider
from iii_store import SqliteStore

LONG = Opts(timeout_ms=600_000)


@dataclass
class Generated:
    """What a caller of `router::chat` got."""

    response: dict[str, Any] | None
    error: BusError | None
    frames: list[dict[str, Any]] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        return [frame["type"] for frame in self.frames]

    @property
    def last(self) -> dict[str, Any]:
        """The message of the terminal frame."""
        frame = self.frames[-1]
        return frame["message"] if frame["type"] == "done" else frame["error"]

    @property
    def text(self) -> str:
        return "".join(block["text"] for block in self.last["content"] if block["type"] == "text")

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [block for block in self.last["content"] if block["type"] == "function_call"]


@dataclass
class ModelStack:
    """An engine with its router and providers, and a bus of a client."""

    engine: Engine
    bus: Bus
    store: SqliteStore
    router: router.Router
    scripted: scripted.ScriptedProvider
    remote: list[RemoteProvider[Any]]
    """Providers whose models run on a server."""

    async def chat(self, messages: Any = "hello", fn: str = "router::chat", **request: Any) -> Generated:
        """One generation, read to its end."""
        if isinstance(messages, str):
            messages = [user(messages)]
        channel = await self.bus.channel()
        request = {"model": "any", "messages": messages, **request, "writer_ref": channel.writer.to_json()}
        call = asyncio.create_task(self.bus.call(fn, request, opts=LONG))
        frames = [decode(item) async for item in channel.source]
        try:
            return Generated(await call, None, frames)
        except BusError as error:
            return Generated(None, error, frames)

    async def script(self, *emit: dict[str, Any], **request: Any) -> Generated:
        """One generation of the scripted provider that plays `emit`."""
        options = {"scripted": {"steps": [{"emit": list(emit)}]}}
        return await self.chat(provider="scripted", provider_options=options, **request)


def user(text: str) -> dict[str, Any]:
    """A message of a person."""
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}


@asynccontextmanager
async def model_stack(
    directory: Path,
    world: World,
    environ: Mapping[str, str] | None = None,
    *,
    with_openai: bool = False,
    with_anthropic: bool = False,
    read_timeout_s: float = 60,
) -> AsyncIterator[ModelStack]:
    """Start an engine with the router and the scripted provider; with `with_openai`, `with_anthropic` that one too."""
    env = {} if environ is None else dict(environ)
    store = SqliteStore(directory / "stack.db", [*modules.FAMILIES, router.FAMILY])
    engine = Engine(world, store, EngineSettings(port=None))
    await engine.start()
    modules.install(lambda name: engine.attach(name, builtin=True), world)
    installed = router.install(engine.attach("llm-router"), world, store, env)
    remote: list[RemoteProvider[Any]] = []
    if with_openai:
        remote.append(openai.install(engine.attach("provider-openai"), world, env, read_timeout_s=read_timeout_s))
    if with_anthropic:
        remote.append(anthropic.install(engine.attach("provider-anthropic"), world, env, read_timeout_s=read_timeout_s))
    script = scripted.install(engine.attach("provider-scripted"), world)
    try:
        await installed.ready()
        await script.ready()
        for provider in remote:
            await provider.ready()
        yield ModelStack(engine, engine.attach("client"), store, installed, script, remote)
    finally:
        for provider in remote:
            await provider.drain()
        await engine.close()
        store.close()
