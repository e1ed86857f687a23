"""The workload of `bench/peers` on the whole embedded stack: engine, queue, sessions, router, harness, one database.

The model is a provider worker without latency, reached as any provider is: through the router and two channels. Started
in a directory of its own; prints the row of `peers/common.py`. `--stepwise` cuts every sequence into single commits,
`--profile FILE` writes what the event loop's thread did, `--bytecodes 1` counts what it executed.
"""

from __future__ import annotations

import asyncio
import cProfile
import gc
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from bytecodes import Bytecodes
from common import Meter, args

from iii_contracts.spec import FunctionSpec
from iii_kit import event_loop
from iii_kit.bus import Bus, Invocation, Opts
from iii_kit.world import real_world
from iii_stack.commands.up import COLLECTOR
from iii_stack.compose import Stack, StackSettings
from iii_stack.data_directory import DataDirectory

LONG = Opts(timeout_ms=600_000)
MODEL = {
    "id": "zero",
    "provider": "bench",
    "context_window": 1_000_000,
    "max_output_tokens": 8_192,
    "supports_tools": True,
}


def spec(function_id: str) -> FunctionSpec:
    return FunctionSpec(function_id, f"{function_id} of the benchmark.", None, None, "bench/invalid")


class Workload:
    """The provider, the called function and the driver."""

    def __init__(self, bus: Bus, meter: Meter, steps: int) -> None:
        self.bus, self.meter, self.steps = bus, meter, steps
        self.ended: dict[str, asyncio.Future[str]] = {}
        bus.serve(spec("provider::bench::stream"), self.stream)
        bus.serve(spec("provider::bench::abort"), self.abort)
        bus.serve(spec("bench::add"), self.add)
        bus.serve(spec("bench::ended"), self.turn_ended)
        bus.bind("harness::turn-completed", "bench::ended", {})

    async def prepare(self, concurrency: int) -> None:
        await self.bus.call("router::provider::register", {"id": "bench", "models": [MODEL]})
        entry = await self.bus.call("configuration::get", {"id": "harness"})
        value = {**entry["value"], "turn_concurrency": concurrency}
        await self.bus.call("configuration::set", {"id": "harness", "value": value})

    async def stream(self, request: dict[str, Any], _: Invocation) -> dict[str, Any]:
        step = self.meter.model(request["session_id"])
        last = step == self.steps - 1
        if last:
            content: list[dict[str, Any]] = [{"type": "text", "text": "done"}]
        else:
            payload = {"session": request["session_id"], "step": step}
            arguments = {"function": "bench::add", "payload": payload}
            content = [
                {"type": "function_call", "id": f"c{step}", "function_id": "agent_trigger", "arguments": arguments}
            ]
        message = {
            "role": "assistant",
            "content": content,
            "model": "zero",
            "provider": "bench",
            "timestamp": 0,
            "stop_reason": "end" if last else "function_call",
            "usage": {"input": 100, "output": 10},
        }
        sink = await self.bus.sink(request["writer_ref"])
        await sink.send(json.dumps({"type": "start", "partial": {**message, "content": []}}))
        await sink.send(json.dumps({"type": "done", "message": message}))
        await sink.close()
        return {"ok": True}

    async def abort(self, request: dict[str, Any], _: Invocation) -> dict[str, Any]:
        return {"aborted": False}

    async def add(self, request: dict[str, Any], _: Invocation) -> str:
        return self.meter.tool(request["session"], request["step"])

    async def turn_ended(self, event: dict[str, Any], _: Invocation) -> None:
        future = self.ended.get(event["session_id"])
        if future is not None and not future.done():
            future.set_result(event["status"])

    async def session(self, number: int) -> None:
        session_id = f"s_{number}"
        self.ended[session_id] = asyncio.get_running_loop().create_future()
        options = {"functions": {"allow": ["bench::*"]}, "max_turns": self.steps + 1}
        request = {
            "session_id": session_id,
            "message": f"go {number}",
            "model": "zero",
            "provider": "bench",
            "options": options,
        }
        await self.bus.call("harness::send", request, opts=LONG)
        status = await self.ended[session_id]
        if status != "completed":
            raise RuntimeError(f"{session_id} ended {status}")

    async def all(self, sessions: int, concurrency: int) -> None:
        gate = asyncio.Semaphore(concurrency)

        async def one(number: int) -> None:
            async with gate:
                await self.session(number)

        await asyncio.gather(*(one(number) for number in range(sessions)))


async def main() -> None:
    a = args(stepwise=0, profile="", bytecodes=0)
    meter = Meter("iii embedded stack" + (" stepwise" if a.stepwise else ""), a)
    directory = DataDirectory(meter.tmp / "data")
    directory.open()
    stack = Stack(real_world(), directory, StackSettings(port=0, stepwise=bool(a.stepwise)))
    await stack.start()
    workload = Workload(stack.engine.attach("bench"), meter, a.steps)
    await workload.prepare(a.conc)
    await workload.session(-1)
    workload.meter.marks.clear()
    workload.meter.tools = 0
    gc.freeze()
    gc.set_threshold(*COLLECTOR)
    profile = cProfile.Profile() if a.profile else None
    bytecodes = Bytecodes() if a.bytecodes else None
    before = stack.store.commits
    meter.start()
    if profile:
        profile.enable()
    if bytecodes:
        bytecodes.start()
    await workload.all(a.sessions, a.conc)
    if bytecodes:
        bytecodes.stop()
        print(bytecodes.report(a.sessions * a.steps), file=sys.stderr)
    if profile:
        profile.disable()
        profile.dump_stats(a.profile)
    meter.stop(commits=stack.store.commits - before)


event_loop.run(main())
