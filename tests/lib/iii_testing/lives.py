"""Lives of a stack that is killed and started again, and what is seen of one session over all of them.

What may be compared is outside the stack: a worker on plain `iii-sdk` notes every start of a call in a file of its own,
with fsync, and lives on while stacks die.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iii_contracts.harness import events as harness_events
from iii_contracts.session import MESSAGE_ADDED, MESSAGE_UPDATED
from iii_contracts.spec import FunctionSpec
from iii_kit.sdk_bus import SdkBus, SdkOptions
from iii_testing.arrangements import Arrangement
from iii_testing.invariants import TERMINAL, Seen, check_session
from iii_testing.processes import COMMAND, StackProcess, environment
from iii_testing.waiting import until, until_async

RECORDER = Path(__file__).parents[2] / "e2e/recorder.py"
STEPS = 10
AT_ONCE_S = 10.0
"""Far below every timer that would bring a forgotten step back (30 s, 120 s), far above what a loaded machine needs."""

WAIT_S = 60.0


def script(steps: int, *, hold_ms: int = 200, pause_ms: int = 110, spoken: bool = True) -> dict[str, Any]:
    """A conversation of `steps` steps: all but the last ask for one call whose arguments are its own.

    `spoken`: they speak first. A reply that is cut off while it speaks is taken up by one more, which moves the script.
    """
    asking = [
        [
            *([{"text": f"Step {n} begins "}] if spoken else []),
            {"delay_ms": pause_ms},
            *([{"text": "and goes on."}] if spoken else []),
            {"delay_ms": pause_ms},
            {"call": {"function": "demo::record", "payload": {"n": n, "hold_ms": hold_ms}}},
        ]
        for n in range(steps - 1)
    ]
    return {"steps": [{"emit": emit} for emit in [*asking, [{"text": "All done."}]]]}


@dataclass
class Watched:
    """What is seen of one session from outside, over every life of the stack."""

    session_id: str
    completed: list[dict[str, Any]] = field(default_factory=list)
    events: int = 0

    def ended(self, turn_id: str) -> bool:
        return any(event["turn_id"] == turn_id for event in self.completed)


@dataclass
class Life:
    """One process of the stack, from its start to its end, and a connection to it."""

    process: StackProcess
    bus: SdkBus
    watched: Watched
    ready_at: float

    async def send(self, text: str, plan: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Send a message to the session; the answer is the acknowledgement."""
        options = {"functions": {"allow": ["demo::*"]}, "provider_options": {"scripted": plan}, "max_turns": 40}
        request = {"session_id": self.watched.session_id, "message": text, "provider": "scripted", "model": "demo"}
        return await self.bus.call("harness::send", {**request, "options": options, **more})

    def kill(self) -> None:
        """Kill every process of the stack."""
        assert self.process.process.poll() is None
        self.process.kill()

    async def progress(self) -> float:
        """Seconds from being ready to the first sign that the session goes on by itself."""
        await until(lambda: self.watched.events, seconds=AT_ONCE_S, what="the session goes on after a restart")
        return time.monotonic() - self.ready_at

    async def record(self) -> dict[str, Any] | None:
        return await self.bus.call("state::get", {"scope": "harness_turn", "key": self.watched.session_id})

    async def over(self) -> None:
        """Wait until the last turn is terminal and told."""

        async def ended() -> bool:
            record = await self.record()
            return bool(record and record["status"] in TERMINAL and self.watched.ended(record["turn_id"]))

        await until_async(ended, seconds=WAIT_S, what="the turn ends")

    async def path(self) -> list[dict[str, Any]]:
        request = {"session_id": self.watched.session_id, "limit": 500, "include_custom": True}
        return (await self.bus.call("session::messages", request))["messages"]


@asynccontextmanager
async def living(
    data: Path, watched: Watched, *, port: int = 0, arrangement: Arrangement = Arrangement.TOGETHER
) -> AsyncIterator[Life]:
    """A stack on `data`, whatever was before; what is left of it at the end is ended."""
    process = await asyncio.to_thread(lambda: StackProcess(data, port=port, arrangement=arrangement))
    watched.events = 0
    bus = SdkBus(SdkOptions(f"watcher-{uuid.uuid4().hex}", url=process.url))
    life = Life(process, bus, watched, time.monotonic())
    try:
        await bus.connected()
        watch(bus, watched)
        yield life
    finally:
        await bus.close()
        await asyncio.to_thread(process.end)


async def start_in_vain(data: Path, port: int, seconds: float, *options: str) -> None:
    """A stack that is killed `seconds` after it was started, wherever it is by then."""
    command = [COMMAND, "up", "--json", "--port", str(port), *options]
    process = await asyncio.create_subprocess_exec(*command, env=environment(data), stdout=subprocess.DEVNULL)
    await asyncio.sleep(seconds)
    process.kill()
    assert await process.wait() == -signal.SIGKILL
    print(f"killed {seconds:.3f} s after its start")


def watch(bus: SdkBus, watched: Watched) -> None:
    async def changed(_: Any, __: Any) -> None:
        watched.events += 1

    async def completed(event: Any, _: Any) -> None:
        watched.completed.append(event)

    for trigger, run in (
        (MESSAGE_ADDED, changed),
        (MESSAGE_UPDATED, changed),
        (harness_events.TURN_COMPLETED, completed),
    ):
        own = f"watcher-{uuid.uuid4().hex}::event"
        bus.serve(FunctionSpec(own, "Watches.", None, None, "watcher/invalid", metadata={"internal": True}), run)
        bus.bind(trigger.id, own, {"session_id": watched.session_id})


@contextmanager
def recording(url: str, starts: Path) -> Iterator[None]:
    worker = subprocess.Popen(
        [sys.executable, str(RECORDER), url, str(starts)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert worker.stdout is not None
    try:
        assert worker.stdout.readline() == "registered\n"
        yield
    finally:
        worker.kill()
        worker.wait()
        worker.stdout.close()


def noted(starts: Path) -> Counter[int]:
    """How often each call was started."""
    return Counter(int(line) for line in starts.read_text().splitlines()) if starts.exists() else Counter()


async def check(life: Life, starts: Path, calls: int) -> Counter[str]:
    """Everything that must hold at the end; returns how many calls had which outcome."""
    started = noted(starts)
    seen = Seen(started={str(n): times for n, times in started.items()}, completed=life.watched.completed)
    await check_session(life.bus, life.watched.session_id, seen)
    messages = [item["message"] for item in await life.path() if "message" in item]
    asked = [
        (block["id"], block["arguments"]["payload"]["n"])
        for message in messages
        if message["role"] == "assistant"
        for block in message["content"]
        if block["type"] == "function_call"
    ]
    assert [n for _, n in asked] == list(range(calls))
    results = {message["function_call_id"]: message for message in messages if message["role"] == "function_result"}
    assert list(results) == [call for call, _ in asked]
    outcomes: Counter[str] = Counter()
    for call, n in asked:
        outcome = outcome_of(results[call])
        outcomes[outcome] += 1
        if outcome == "answered":
            assert started[n] == 1
            assert results[call]["details"] == {"recorded": n}
        elif outcome == "not connected":
            assert started[n] == 0
    return outcomes


def outcome_of(result: dict[str, Any]) -> str:
    if not result["is_error"]:
        return "answered"
    error = result["details"]["error"]
    if error == "interrupted":
        return "unknown"
    assert error["code"] == "function_not_found", result
    return "not connected"


def texts(path: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Role and text of the messages of people and models."""
    return [
        (message["role"], "".join(block.get("text", "") for block in message["content"]))
        for message in (item["message"] for item in path if "message" in item)
        if message["role"] in ("user", "assistant")
    ]
