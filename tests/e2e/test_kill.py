"""The stack is killed with SIGKILL, started again, and goes on by itself: nothing lost, nothing started twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from iii_testing.arrangements import Arrangement
from iii_testing.invariants import TERMINAL
from iii_testing.lives import (
    AT_ONCE_S,
    STEPS,
    WAIT_S,
    Life,
    Watched,
    check,
    living,
    noted,
    recording,
    script,
    start_in_vain,
    texts,
)
from iii_testing.processes import COMMAND, StackProcess
from iii_testing.waiting import until, until_async

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]

KILLS = 10
KILLS_APART = 4
"""Starts of several processes take their time."""

ARRANGED = pytest.mark.parametrize(
    "arrangement", [Arrangement.TOGETHER, Arrangement.HARNESS, Arrangement.SIBLINGS], ids=lambda one: one.name.lower()
)


@pytest.mark.requirement("stack.kill.goes-on")
@ARRANGED
async def test_ten_kills_at_random_moments_lose_and_repeat_nothing(tmp_path: Path, arrangement: Arrangement) -> None:
    seed = int(os.environ.get("III_SEED") or random.SystemRandom().randrange(2**32))
    print(f"III_SEED={seed}")
    moments = random.Random(seed)
    kills = KILLS_APART if arrangement.apart else KILLS
    data, starts, watched = tmp_path / "data", tmp_path / "starts", Watched(f"s_{uuid.uuid4().hex}")
    waited: list[float] = []
    async with living(data, watched, arrangement=arrangement) as life:
        port = int(life.process.url.rsplit(":", 1)[1])
        with recording(life.process.url, starts):
            await life.send("Note nine numbers.", script(STEPS, hold_ms=1_500 if arrangement.apart else 500))
            await asyncio.sleep(moments.uniform(0, 0.4))
            life.kill()
            for kill in range(2, kills + 1):
                if moments.random() < 0.3:
                    await start_in_vain(data, port, moments.uniform(0.1, 0.9), *arrangement.options)
                async with living(data, watched, port=port, arrangement=arrangement) as life:
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
            async with living(data, watched, port=port, arrangement=arrangement) as life:
                waited.append(await life.progress())
                await life.over()
                outcomes = await check(life, starts, STEPS - 1)
                record = await life.record()
                assert record is not None
                assert (record["status"], record["result"]) == ("completed", "All done.")
    print(f"{kills} kills; {dict(outcomes)}; went on after {max(waited):.2f} s at most")


@pytest.mark.requirement("stack.kill.parked")
@ARRANGED
async def test_messages_that_wait_while_a_turn_runs_survive_a_kill(tmp_path: Path, arrangement: Arrangement) -> None:
    data, starts, watched = tmp_path / "data", tmp_path / "starts", Watched(f"s_{uuid.uuid4().hex}")
    plan = script(4, hold_ms=2_000, pause_ms=0)
    async with living(data, watched, arrangement=arrangement) as life:
        port = int(life.process.url.rsplit(":", 1)[1])
        with recording(life.process.url, starts):
            await life.send("first", plan)
            await until(lambda: noted(starts), seconds=WAIT_S, what="the first call runs")
            for text in ("second", "third"):
                assert (await life.send(text, plan))["queued"] is True
            life.kill()
            async with living(data, watched, port=port, arrangement=arrangement) as life:
                await life.progress()
                await life.over()
                await check(life, starts, 3)
                said = texts(await life.path())
    assert [text for role, text in said if role == "user"] == ["first", "second", "third"]
    assert said[-1] == ("assistant", "All done.")


@pytest.mark.requirement("stack.kill.acknowledged")
@ARRANGED
async def test_what_was_acknowledged_right_before_a_kill_is_done(tmp_path: Path, arrangement: Arrangement) -> None:
    data, starts = tmp_path / "data", tmp_path / "starts"
    plan = script(2, hold_ms=0, pause_ms=0)
    before: list[tuple[Watched, dict[str, Any]]] = []
    port = 0
    for round_ in range(4):
        watched = Watched(f"s_{uuid.uuid4().hex}")
        async with living(data, watched, port=port, arrangement=arrangement) as life:
            port = int(life.process.url.rsplit(":", 1)[1])
            answer = await life.send("hello", plan, idempotency_key=f"key-{round_}")
            life.kill()
        before.append((watched, answer))
    for watched, answer in before:
        async with living(data, watched, port=port, arrangement=arrangement) as life:

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
