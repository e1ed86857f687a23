"""Calls over one short connection: answers, errors, and what is no bus."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from iii_contracts.spec import FunctionSpec
from iii_embedded import EngineSettings
from iii_kit.bus import Invocation
from iii_kit.errors import BusError, CodedError
from iii_stack import asking as module
from iii_stack.asking import NotConnected, asking
from iii_testing.embedded import Embedded, embedded

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("stack.asking")]


def serve_demo(running: Embedded, called: asyncio.Event | None = None) -> None:
    async def echo(request: Any, _: Invocation) -> Any:
        if called is not None:
            called.set()
            await asyncio.Event().wait()
        if "error" in request:
            raise CodedError("demo/refused", request["error"])
        return {"said": request["text"]}

    running.attach("demo").serve(FunctionSpec("demo::echo", "Echoes.", None, None, "invalid"), echo)


async def test_calls_side_by_side_get_their_own_answers_and_errors() -> None:
    async with embedded(listening=True) as running:
        serve_demo(running)
        async with asking(running.url) as bus:
            answers = await asyncio.gather(*(bus.call("demo::echo", {"text": str(n)}) for n in range(5)))
            assert answers == [{"said": str(n)} for n in range(5)]
            with pytest.raises(BusError, match="demo/refused: no") as refused:
                await bus.call("demo::echo", {"error": "no"})
            assert refused.value.code == "demo/refused"
            with pytest.raises(BusError) as missing:
                await bus.call("demo::nope", {})
            assert missing.value.code == "function_not_found"
            with pytest.raises(BusError) as unsent:
                await bus.call("demo::echo", {"text": float("nan")})
            assert unsent.value.code == "unencodable"


async def test_a_call_ends_when_its_time_is_over_and_when_the_bus_goes_away() -> None:
    async with embedded(listening=True) as running:
        called = asyncio.Event()
        serve_demo(running, called)
        async with asking(running.url) as bus:
            with pytest.raises(BusError) as late:
                await bus.call("demo::echo", {}, timeout_ms=20)
            assert late.value.code == "TIMEOUT"
            called.clear()
            waiting = asyncio.ensure_future(bus.call("demo::echo", {}))
            await called.wait()
            running.engine.crash()
            with pytest.raises(BusError) as lost:
                await waiting
            assert lost.value.code == "connection_lost"


async def test_the_token_opens_a_bus_that_wants_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with embedded(settings=EngineSettings(port=0, token="secret")) as running:
        monkeypatch.delenv("III_TOKEN", raising=False)
        with pytest.raises(NotConnected, match="401"):
            async with asking(running.url):
                pass
        monkeypatch.setenv("III_TOKEN", "secret")
        async with asking(running.url) as bus:
            assert (await bus.call("engine::functions::list", {}))["functions"]


async def test_who_does_not_greet_as_an_engine_is_no_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async def rude(socket: ServerConnection) -> None:
        await socket.close(1008, "go away")

    monkeypatch.setattr(module, "CONNECT_S", 0.2)
    for behaviour, word in ((silent, "no answer within"), (rude, "go away")):
        async with serve(behaviour, "127.0.0.1", 0) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            with pytest.raises(NotConnected, match=word):
                async with asking(f"ws://127.0.0.1:{port}"):
                    pass
