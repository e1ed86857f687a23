"""The stack is killed with SIGKILL, started again, and goes on by itself: nothing lost, nothing started twice.

What may be compared is outside the stack: a worker on plain `iii-sdk` notes every start of a call in a file of its own,
with fsync, and lives on while stacks die.
"""

from __future__ import annotations

import asyncio
import os
import random
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

import pytest

from iii_contracts.harness import events as harness_events
from iii_contracts.session import MESSAGE_ADDED, MESSAGE_UPDATED
from iii_contracts.spec import FunctionSpec
from iii_kit.sdk_bus import SdkBus, SdkOptions
from iii_testing.invariants import TERMINAL, Seen, check_session
from iii_testing.processes import COMMAND, StackProcess, environment
from iii_testing.waiting import until, until_async

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]

RECORDER = Path(__file__).with_name("recorder.py")
KILLS = 10
STEPS = 10
AT_ONCE_S = 10.0
"""Far below every timer that would bring a forgotten step back (30 s, 120 s), far above what a loaded machine needs."""

WAIT_S = 60.0


def script(steps: int, *, hold_ms: int = 200, pause_ms: int = 110) -> dict[str, Any]:
    """A conversation of `steps` steps: all but the last ask for one call whose arguments are its own."""
    asking = [
        [
            {"text": f"Step {n} begins "},
            {"delay_ms": pause_ms},
            {"text": "and goes on."},
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
        assert self.process.process.poll() is None
        self.process.process.send_signal(signal.SIGKILL)

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
async def living(data: Path, watched: Watched, *, port: int = 0) -> AsyncIterator[Life]:
    """A stack on `data`, whatever was before; what is left of it at the end is ended."""
    process = await asyncio.to_thread(lambda: StackProcess(data, port=port))
    watched.events = 0
    bus = SdkBus(SdkOptions(f"watcher-{uuid.uuid4().hex}", url=process.url))
    life = Life(process, bus, watched, time.monotonic())
    try:
        await bus.connected()
        _watch(bus, watched)
        yield life
    finally:
        await bus.close()
        await asyncio.to_thread(process.end)


async def start_in_vain(data: Path, port: int, seconds: float) -> None:
    """A stack that is killed `seconds` after it was started, wherever it is by then."""
    command = [COMMAND, "up", "--json", "--port", str(port)]
    process = await asyncio.create_subprocess_exec(*command, env=environment(data), stdout=subprocess.DEVNULL)
    await asyncio.sleep(seconds)
    process.kill()
    assert await process.wait() == -signal.SIGKILL
    print(f"killed {seconds:.3f} s after its start")


def _watch(bus: SdkBus, watched: Watched) -> None:
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


@pytest.mark.requirement("stack.kill.goes-on")
async def test_ten_kills_at_random_moments_lose_and_repeat_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("III_SEED") or random.SystemRandom().randrange(2**32))
    print(f"III_SEED={seed}")
    moments = random.Random(seed)
    data, starts, watched = tmp_path / "data", tmp_path / "starts", Watched(f"s_{uuid.uuid4().hex}")
    waited: list[float] = []
    async with living(data, watched) as life:
        port = int(life.process.url.rsplit(":", 1)[1])
        with recording(life.process.url, starts):
            await life.send("Note nine numbers.", script(STEPS))
            await asyncio.sleep(moments.uniform(0, 0.4))
            life.kill()
            for kill in range(2, KILLS + 1):
                if moments.random() < 0.3:
                    await start_in_vain(data, port, moments.uniform(0.3, 3.0))
                async with living(data, watched, port=port) as life:
                    if going := moments.random() < 0.7:
                        waited.append(await life.progress())
                    after = moments.uniform(0, 0.25)
                    await asyncio.sleep(after)
                    record = await life.record()
                    assert record is not None
                    assert record["status"] == "running", f"over before kill {kill}"
                    life.kill()
                    since = "going on" if going else "ready"
                    print(f"kill {kill}: step {record.get('step', 0)}, {after:.3f} s after {since}")
            async with living(data, watched, port=port) as life:
                waited.append(await life.progress())
                await life.over()
                outcomes = await check(life, starts, STEPS - 1)
                record = await life.record()
                assert record is not None
                assert (record["status"], record["result"]) == ("completed", "All done.")
    print(f"{KILLS} kills; {dict(outcomes)}; went on after {max(waited):.2f} s at most")


@pytest.mark.requirement("stack.kill.parked")
async def test_messages_that_wait_while_a_turn_runs_survive_a_kill(tmp_path: Path) -> None:
    data, starts, watched = tmp_path / "data", tmp_path / "starts", Watched(f"s_{uuid.uuid4().hex}")
    plan = script(4, hold_ms=2_000, pause_ms=0)
    async with living(data, watched) as life:
        port = int(life.process.url.rsplit(":", 1)[1])
        with recording(life.process.url, starts):
            await life.send("first", plan)
            await until(lambda: noted(starts), seconds=WAIT_S, what="the first call runs")
            for text in ("second", "third"):
                assert (await life.send(text, plan))["queued"] is True
            life.kill()
            async with living(data, watched, port=port) as life:
                await life.progress()
                await life.over()
                await check(life, starts, 3)
                said = texts(await life.path())
    assert [text for role, text in said if role == "user"] == ["first", "second", "third"]
    assert said[-1] == ("assistant", "All done.")


@pytest.mark.requirement("stack.kill.acknowledged")
async def test_what_was_acknowledged_right_before_a_kill_is_done(tmp_path: Path) -> None:
    data, starts = tmp_path / "data", tmp_path / "starts"
    plan = script(2, hold_ms=0, pause_ms=0)
    before: list[tuple[Watched, dict[str, Any]]] = []
    port = 0
    for round_ in range(4):
        watched = Watched(f"s_{uuid.uuid4().hex}")
        async with living(data, watched, port=port) as life:
            port = int(life.process.url.rsplit(":", 1)[1])
            answer = await life.send("hello", plan, idempotency_key=f"key-{round_}")
            life.kill()
        before.append((watched, answer))
    for watched, answer in before:
        async with living(data, watched, port=port) as life:

            async def ended(life: Life = life) -> bool:
                record = await life.record()
                return bool(record and record["status"] in TERMINAL)

            await until_async(ended, seconds=AT_ONCE_S, what="the acknowledged turn ends")
            again = await life.send("hello", plan, idempotency_key=f"key-{before.index((watched, answer))}")
            assert again == {**answer, "deduplicated": True}
            said = texts(await life.path())
            assert said[0] == ("user", "hello")
            assert said[-1] == ("assistant", "All done.")
            assert len(said) == 3
    assert not starts.exists()


@pytest.mark.requirement("stack.kill.chat")
def test_a_chat_outlives_the_stack_and_shows_the_rest_of_the_answer(tmp_path: Path) -> None:
    first = StackProcess(tmp_path / "data")
    with subprocess.Popen(
        [COMMAND, "chat", "What can you do here?"],
        env=first.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as chat:
        assert chat.stdout is not None
        assert chat.stderr is not None
        begun = chat.stdout.read(1)
        first.end(signal.SIGKILL)
        second = StackProcess(tmp_path / "data", port=int(first.url.rsplit(":", 1)[1]))
        try:
            rest, told = chat.stdout.read(), chat.stderr.read()
            assert chat.wait(WAIT_S) == 0, told
            said = texts(second.json("show", second.json("sessions")["sessions"][0]["session_id"])["entries"])
        finally:
            second.end()
    hello, report = [text for role, text in said if role == "assistant"]
    assert begun + rest == f"{hello}\n{report}\n"
    assert told.count("→ engine::functions::list") == 1
