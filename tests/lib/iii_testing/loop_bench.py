"""The whole harness over a real store, engine, queue and session store, with a model that a test writes.

The model is a function of the request alone, so a generation that is made again gives the same reply; targets count
every start of every call. `crash` ends everything as a killed process, `boot` starts it again over the same store.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import iii_harness.app as harness
import iii_queue as queue
from iii_contracts.spec import FunctionSpec, TriggerSpec
from iii_embedded import modules
from iii_embedded.engine import Engine, EngineSettings
from iii_harness.record import TurnRecord, from_row
from iii_kit.bus import Bus, Invocation
from iii_kit.errors import BusError
from iii_kit.world import World
from iii_siblings import sessions
from iii_store import Family, InlineStore, SqliteStore
from iii_testing.played_context import PlayedContext
from iii_testing.waiting import until

FAMILIES: tuple[Family, ...] = (*modules.FAMILIES, queue.FAMILY, sessions.FAMILY)

Request = dict[str, Any]
Reply = list[Any]
"""Frames; an event is set and the stream then hangs, a function is awaited between frames."""
Model = Callable[[Request], "Reply | Awaitable[Reply]"]


def spec(function_id: str, **metadata: Any) -> FunctionSpec:
    """A function that takes and gives any JSON."""
    return FunctionSpec(function_id, f"Test function {function_id}.", None, None, "test/invalid", metadata)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def call(call_id: str, function_id: str, payload: Any = None, **extra: Any) -> dict[str, Any]:
    """A call by the one tool of a chat."""
    arguments = {"function": function_id, "payload": {} if payload is None else payload, **extra}
    return {"type": "function_call", "id": call_id, "function_id": "agent_trigger", "arguments": arguments}


def message(*content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """An assistant message as a provider ends with."""
    calls = any(block["type"] == "function_call" for block in content)
    base = {
        "role": "assistant",
        "content": list(content),
        "stop_reason": "function_call" if calls else "end",
        "model": "m",
        "provider": "test",
        "timestamp": 1,
        "usage": {"input": 10, "output": 5},
    }
    return {**base, **fields}


def reply(*content: dict[str, Any], **fields: Any) -> Reply:
    """The frames of a whole reply."""
    whole = message(*content, **fields)
    return [
        {"type": "start", "partial": {**whole, "content": [], "stop_reason": "end"}},
        {"type": "done", "message": whole},
    ]


def replies_so_far(request: Request) -> int:
    """How many assistant messages the model is shown."""
    return sum(m["role"] == "assistant" for m in request["messages"])


def steps(*made: Reply) -> Model:
    """A model that gives its n-th reply to a request with n earlier ones; the last one for ever."""
    return lambda request: made[min(replies_so_far(request), len(made) - 1)]


class LoopBench:
    """One process with everything in it."""

    def __init__(self, world: World, path: Path, model: Model, *, stepwise: bool = False, inline: bool = False) -> None:
        self.world = world
        self.path = path
        self.model = model
        self.stepwise = stepwise
        self.inline = inline
        self.wrap: Callable[[Bus], Bus] = lambda bus: bus
        self.requests: list[Request] = []
        self.aborted: list[str] = []
        self.started: Counter[str] = Counter()
        self.completed: list[dict[str, Any]] = []
        self.turn_started: list[dict[str, Any]] = []
        self.targets: dict[str, Callable[[Any], Any]] = {}
        self.context: PlayedContext | None = None
        self.chat_answer: Callable[[Request], Any] = lambda _: {"ok": True, "provider": "test", "model": "m"}
        self._streams: dict[str, asyncio.Event] = {}

    async def boot(self) -> None:
        """Start a process over the store."""
        kind = InlineStore if self.inline else SqliteStore
        self.store = kind(self.path / "stack.db", FAMILIES, reach=self.world.reach)
        self.engine = Engine(self.world, self.store, EngineSettings(port=None))
        await self.engine.start()
        parts = modules.install(lambda name: self.engine.attach(name, builtin=True), self.world)
        self.queue = queue.install(self.engine.attach("queue", builtin=True), self.store, self.world)
        self.sessions = sessions.install(self.engine.attach("session-manager"), self.world)
        self._serve_router(self.engine.attach("llm-router"))
        if self.context is not None:
            self.context.serve(self.engine.attach("context-manager"))
        self.worker = self.engine.attach("demo")
        for function_id, target in self.targets.items():
            self.worker.serve(spec(function_id), self._target(function_id, target))
        self.client = self.engine.attach("client")
        self.bus = self.engine.attach("harness", stepwise=self.stepwise)
        self.harness = harness.install(self.wrap(self.bus), self.world)
        self._listen(self.client)
        for part in (*parts, self.queue, self.harness):
            await asyncio.wait_for(part.ready(), 20)

    def crash(self, *, inside_writer: bool = False) -> None:
        """Die as a killed process: nothing is finished, told or tidied up.

        `inside_writer`: called from within a transaction, which the caller's exception must still roll back.
        """
        self.engine.crash()
        if inside_writer:
            asyncio.get_running_loop().call_soon(self.store.crash)
        else:
            self.store.crash()

    async def close(self) -> None:
        """End in good order."""
        await self.harness.drain()
        await self.queue.drain()
        await self.engine.close()
        self.store.close()

    def target(self, function_id: str, run: Callable[[Any], Any]) -> None:
        """Serve a target; every start is counted by function and arguments. To be called before `boot`."""
        self.targets[function_id] = run

    async def send(self, text: str = "hello", **fields: Any) -> dict[str, Any]:
        """A send that may call everything under `demo::`."""
        options = {"functions": {"allow": ["demo::*"]}, **fields.pop("options", {})}
        request = {"message": text, "model": "m", "provider": "test", "options": options, **fields}
        return await self.client.call("harness::send", request)

    async def call(self, fn: str, **data: Any) -> Any:
        """Any function, as a client."""
        return await self.client.call(fn, data)

    async def record(self, session_id: str) -> TurnRecord:
        """The stored record, read past every cache."""
        row = await self.client.call("state::get", {"scope": "harness_turn", "key": session_id})
        digest = row["options"].get("system_prompt_digest")
        if digest is not None:
            row["options"]["system_prompt"] = digest
        return from_row(row)

    async def path_of(self, session_id: str) -> list[dict[str, Any]]:
        """The active path with its custom entries."""
        page = await self.client.call(
            "session::messages", {"session_id": session_id, "limit": 500, "include_custom": True}
        )
        return page["messages"]

    async def over(self, session_id: str, turns: int = 1) -> TurnRecord:
        """Wait until the session has told the end of `turns` turns; its record."""
        done = lambda: len({c["turn_id"] for c in self.completed if c["session_id"] == session_id}) >= turns  # noqa: E731
        await until(done, what=f"{turns} turns of {session_id} to end")
        return await self.record(session_id)

    async def progress(self) -> None:
        """Return once something has happened: a commit, or a moment of quiet."""
        commits = self.store.commits
        for _ in range(200):
            await asyncio.sleep(0.001)
            if self.store.commits != commits:
                return

    def _target(self, function_id: str, run: Callable[[Any], Any]) -> Callable[[Any, Invocation], Awaitable[Any]]:
        async def serve(data: Any, _: Invocation) -> Any:
            fields = {key: value for key, value in data.items() if key != "_caller_worker_id"}
            self.started[f"{function_id} {json.dumps(fields, sort_keys=True)}"] += 1
            result = run(fields)
            return await result if asyncio.iscoroutine(result) else result

        return serve

    def _serve_router(self, bus: Bus) -> None:
        async def chat(data: Request, _: Invocation) -> Any:
            self.requests.append(data)
            sink = await bus.sink(data["writer_ref"])
            made = self.model(data)
            frames: Reply = await made if asyncio.iscoroutine(made) else made
            try:
                for frame in frames:
                    if isinstance(frame, asyncio.Event):
                        frame.set()
                        await asyncio.Event().wait()
                    elif callable(frame):
                        await frame()
                    else:
                        await sink.send(json.dumps(frame))
                await sink.close()
            except BusError:
                return {"ok": True, "stop_reason": "aborted"}
            return self.chat_answer(data)

        async def abort(data: Request, _: Invocation) -> Any:
            self.aborted.append(data["request_id"])
            return {"aborted": False}

        bus.serve(spec("router::chat"), chat)
        bus.serve(spec("router::abort"), abort)

    def _listen(self, bus: Bus) -> None:
        async def completed(data: Any, _: Invocation) -> None:
            self.completed.append(data)

        async def started(data: Any, _: Invocation) -> None:
            self.turn_started.append(data)

        bus.serve(spec("client::completed"), completed)
        bus.serve(spec("client::started"), started)
        bus.bind("harness::turn-completed", "client::completed", {})
        bus.bind("harness::turn-started", "client::started", {})


@asynccontextmanager
async def bench(
    world: World,
    path: Path,
    model: Model,
    *,
    stepwise: bool = False,
    context: PlayedContext | None = None,
    **targets: Callable[[Any], Any],
) -> AsyncIterator[LoopBench]:
    """A booted bench; `targets` are served as `demo::<name>`."""
    made = LoopBench(world, path, model, stepwise=stepwise)
    made.context = context
    for name, run in targets.items():
        made.target(f"demo::{name}", run)
    await made.boot()
    try:
        yield made
    finally:
        await made.close()


__all__ = ["LoopBench", "TriggerSpec", "bench", "call", "message", "reply", "steps", "text"]
