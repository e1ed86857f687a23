"""One session for the fault suites: five steps, calls in four of them, a steering message on the way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from iii_kit.errors import BusError
from iii_kit.world import World
from iii_testing.invariants import Seen, check_session
from iii_testing.loop_bench import LoopBench, call, reply, steps, text
from iii_testing.waiting import settle

SESSION = "s_faults"
FIRST = "first message"
STEER = "steering message"

MODEL = steps(
    reply(text("looking"), call("c0", "demo::work", {"n": 0})),
    reply(call("c1", "demo::work", {"n": 1}), call("c2", "demo::work", {"n": 2})),
    reply(call("c3", "demo::steer", {"n": 3})),
    reply(call("c4", "demo::work", {"n": 4}), call("c5", "other::denied", {"n": 5})),
    reply(text("done")),
)


class Scenario:
    """Runs the session, over as many processes as it takes."""

    def __init__(self, world: World, path: Path, *, stepwise: bool, inline: bool = True) -> None:
        path.mkdir(exist_ok=True)
        self.world = world
        self.accepted: list[str] = []
        self.bench = LoopBench(world, path, MODEL, stepwise=stepwise, inline=inline)
        self.bench.target("demo::work", lambda data: {"n": data["n"], "text": "x" * 200})
        self.bench.target("demo::steer", self._steer)

    async def _steer(self, data: Any) -> Any:
        await self.send(STEER)
        return data

    async def send(self, words: str) -> None:
        """Send until it is accepted or the process dies; a repeated key sends once."""
        if words in self.accepted:
            return
        await self.bench.send(words, session_id=SESSION, idempotency_key=words.replace(" ", "-"))
        if words not in self.accepted:
            self.accepted.append(words)

    async def begin(self) -> None:
        """The first message; a refusal that the fault caused is tried again."""
        for _ in range(3):
            try:
                sending = asyncio.ensure_future(self.send(FIRST))
                while not sending.done():
                    await self.calm_down()
                await sending
                return
            except BusError:
                await self.calm_down()

    async def at_rest(self) -> bool:
        """True when the turn is over, told, and nothing is queued."""
        row = await self.bench.call("state::get", scope="harness_turn", key=SESSION)
        if row is None or row["status"] not in ("completed", "cancelled", "failed"):
            return False
        if row["turn_id"] not in {event["turn_id"] for event in self.bench.completed}:
            return False
        jobs = await self.bench.store.read(lambda r: r.execute("SELECT count(*) FROM jobs").fetchall())
        return jobs[0][0] == 0

    async def finish(self) -> None:
        """Let everything come to rest; the clock moves only while nothing else does."""
        for _ in range(400):
            if await self.at_rest():
                return
            await self.calm_down()
        row = await self.bench.call("state::get", scope="harness_turn", key=SESSION)
        raise AssertionError(f"the session never comes to rest: {row}")

    async def calm_down(self) -> None:
        """Let what is ready run; when nothing is, move the clock."""
        points = self.world.points  # type: ignore[attr-defined]
        before = len(points.log)
        await settle(60)
        if len(points.log) == before:
            await self.world.advance(0.25)  # type: ignore[attr-defined]

    async def check(self) -> None:
        """Everything that must hold at rest."""
        seen = Seen(self.bench.started, self.bench.requests, self.bench.completed, self.accepted)
        await check_session(self.bench.client, SESSION, seen)
