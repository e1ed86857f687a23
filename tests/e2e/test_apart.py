"""Each process of an arrangement dies alone, at random moments: nothing is lost, nothing started twice (issue 4)."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from iii_kit.errors import BusError
from iii_kit.sdk_bus import SdkBus, SdkOptions
from iii_testing.arrangements import Arrangement, PartProcess
from iii_testing.lives import STEPS, WAIT_S, Life, Watched, check, noted, recording, script, watch
from iii_testing.processes import StackProcess
from iii_testing.waiting import until, until_async

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(400)]

KILLS = 5
"""How often each process dies; a step takes about half a second."""


@dataclass
class Bench:
    """A stack whose parts are processes, with a client that outlives all of them."""

    life: Life
    data: Path
    starts: Path

    @property
    def parts(self) -> dict[str, PartProcess]:
        return self.life.process.apart.parts

    async def resumes(self) -> None:
        """Wait until the record takes a further step, or is terminal."""
        before = await self.step()

        async def moved() -> bool:
            return await self.step() != before

        await until_async(moved, seconds=WAIT_S, what=f"the session goes on after step {before}")

    async def restart_engine(self) -> None:
        """Kill the stack's own process, start it again, and be connected to it."""
        await asyncio.to_thread(self.life.process.restart)
        await self.life.bus.connected()

    async def configure(self, **changed: Any) -> None:
        """Change the configuration of the harness."""
        bus = self.life.bus
        value = (await bus.call("configuration::get", {"id": "harness"}))["value"]
        await bus.call("configuration::set", {"id": "harness", "value": {**value, **changed}})

    async def step(self) -> tuple[int, str]:
        record = await self.life.record()
        return (-1, "none") if record is None else (record.get("step", 0), record["status"])

    async def ended(self, calls: int = STEPS - 1) -> dict[str, Any]:
        """Wait for the end, check everything, and return the record."""
        await self.life.over()
        print(dict(await check(self.life, self.starts, calls)))
        record = await self.life.record()
        assert record is not None
        await self.compared(record["session_id"])
        return record

    async def compared(self, session_id: str) -> None:
        """Eval answers again after whatever died, and reads the session as it ended."""
        other = (await self.life.bus.call("session::create", {}))["session_id"]
        asked = {"session_ids": [session_id, other], "baseline_session_id": session_id}

        async def answers() -> bool:
            try:
                answer = await self.life.bus.call("eval::compare-sessions", asked)
            except BusError as error:
                if not (error.matches("function_not_found") or error.matches("not connected")):
                    raise
                return False
            first = answer["sessions"][0]
            return "errors" not in first and first["lifecycle"]["complete"] is True

        await until_async(answers, seconds=WAIT_S, what="eval compares the session")


@asynccontextmanager
async def bench(tmp_path: Path, arrangement: Arrangement) -> AsyncIterator[Bench]:
    data, starts = tmp_path / "data", tmp_path / "starts"
    process = await asyncio.to_thread(lambda: StackProcess(data, arrangement=arrangement))
    quickly = {"reconnect_initial_ms": 50, "reconnect_max_ms": 200}
    bus = SdkBus(SdkOptions(f"watcher-{uuid.uuid4().hex}", url=process.url, **quickly))
    watched = Watched(f"s_{uuid.uuid4().hex}")
    life = Life(process, bus, watched, time.monotonic())
    try:
        await bus.connected()
        watch(bus, watched)
        with recording(process.url, starts):
            yield Bench(life, data, starts)
    finally:
        await bus.close()
        await asyncio.to_thread(life.process.end)


def moments() -> random.Random:
    seed = int(os.environ.get("III_SEED") or random.SystemRandom().randrange(2**32))
    print(f"III_SEED={seed}")
    return random.Random(seed)


@pytest.mark.requirement("stack.apart.kill-one")
@pytest.mark.parametrize("part", ["harness", "siblings", "queue"])
async def test_a_part_that_is_killed_again_and_again_loses_and_repeats_nothing(tmp_path: Path, part: str) -> None:
    when = moments()
    async with bench(tmp_path, Arrangement.QUEUE) as made:
        # A turn survives one broken generation by default; here every kill may break one.
        await made.configure(max_transient_resumes=20)
        await made.life.send("Note nine numbers.", script(STEPS, spoken=part != "siblings"))
        for _ in range(KILLS):
            await asyncio.sleep(when.uniform(0, 0.7))
            made.parts[part].kill()
            await asyncio.sleep(when.uniform(0, 1.5))
            await asyncio.to_thread(made.parts[part].start)
            if when.random() < 0.7:
                await made.resumes()
        record = await made.ended()
        assert (record["status"], record["result"]) == ("completed", "All done.")


@pytest.mark.requirement("stack.apart.kill-one")
async def test_eval_that_is_killed_again_and_again_disturbs_no_turn_and_compares_again(tmp_path: Path) -> None:
    async with bench(tmp_path, Arrangement.QUEUE) as made:
        await made.life.send("Note nine numbers.", script(STEPS))
        await until(lambda: noted(made.starts), seconds=WAIT_S, what="a call has started")
        for _ in range(3):
            made.parts["eval"].kill()
            await asyncio.to_thread(made.parts["eval"].start)
        record = await made.ended()
        assert (record["status"], record["result"]) == ("completed", "All done.")


@pytest.mark.requirement("stack.apart.kill-engine")
@pytest.mark.parametrize("arrangement", [Arrangement.HARNESS, Arrangement.QUEUE])
async def test_an_engine_that_is_killed_again_and_again_is_found_again(
    tmp_path: Path, arrangement: Arrangement
) -> None:
    when = moments()
    async with bench(tmp_path, arrangement) as made:
        await made.life.send("Note nine numbers.", script(STEPS))
        for _ in range(KILLS):
            await asyncio.sleep(when.uniform(0, 0.7))
            await made.restart_engine()
            if when.random() < 0.7:
                await made.resumes()
        record = await made.ended()
        assert (record["status"], record["result"]) == ("completed", "All done.")


@pytest.mark.requirement("stack.apart.takeover")
async def test_a_stopped_harness_whose_successor_took_over_changes_nothing_when_it_goes_on(tmp_path: Path) -> None:
    async with bench(tmp_path, Arrangement.HARNESS) as made:
        old = made.parts["harness"]
        await made.life.send("Note nine numbers.", script(STEPS, hold_ms=100, pause_ms=20))
        await until(lambda: len(noted(made.starts)) >= 2, seconds=WAIT_S, what="two calls have started")
        old.send(signal.SIGSTOP)
        successor = old.successor()
        refused = 0
        while True:
            await asyncio.to_thread(lambda: successor.start(ready=False))
            if await asyncio.to_thread(successor.comes_up):
                break
            code, said = await asyncio.to_thread(successor.wait)
            assert code == 1
            assert "WORKER_NAMESPACE_CONFLICT" in said
            refused += 1
        assert refused, "a second harness is refused while the first one has its connection"
        await made.resumes()
        old.send(signal.SIGCONT)
        code, said = await asyncio.to_thread(old.wait)
        assert code == 1, said
        assert "WORKER_NAMESPACE_CONFLICT" in said
        made.parts["harness"] = successor
        record = await made.ended()
        assert (record["status"], record["result"]) == ("completed", "All done.")
