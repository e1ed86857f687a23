"""Send, steer, take back, edit, stop and crash in any order, on the whole loop, against a model of plain lists."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from iii_kit.world import real_world
from iii_testing.loop_bench import LoopBench, reply, text
from iii_testing.waiting import until

SESSION = "s_machine"


class Gated:
    """A model whose replies wait until the test lets them out, one at a time."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[None]] = []

    async def __call__(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        self.heard = request
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        try:
            await turn
        finally:
            self.waiting.remove(turn)
        return reply(text("as you say"))


class Conversation(RuleBasedStateMachine):
    """`said` and `parked` are what the transcript and the queue must hold; `live` whether a turn runs."""

    @initialize(stepwise=st.booleans())
    def boot(self, stepwise: bool) -> None:
        self.runner = asyncio.Runner()
        self.path = Path(tempfile.mkdtemp())
        self.said: list[str] = []
        self.parked: list[str] = []
        self.live = False
        self.count = 0
        self.keys: list[tuple[str, str]] = []
        self.bench = LoopBench(real_world(), self.path, Gated(), stepwise=stepwise)
        self.run(self.bench.boot())

    def run(self, work: Any) -> Any:
        return self.runner.run(self._bounded(work))

    async def _bounded(self, work: Any) -> Any:
        result = await asyncio.wait_for(work, 20)
        await until(self._quiet, what="the turn to wait for its model or to be over")
        return result

    def _quiet(self) -> bool:
        busy = len(self.bench.harness._parts.executing)
        return bool(self.bench.model.waiting) if self.live else busy == 0  # type: ignore[attr-defined]

    def fresh(self) -> str:
        self.count += 1
        return f"message {self.count}"

    def arrives(self, message: str) -> None:
        if self.live:
            self.parked.append(message)
        else:
            self.said.append(message)
            self.live = True

    @rule(keyed=st.booleans())
    def send(self, keyed: bool) -> None:
        message = self.fresh()
        was_live = self.live
        fields = {"idempotency_key": message} if keyed else {}
        self.arrives(message)
        answer = self.run(self.bench.send(message, session_id=SESSION, **fields))
        assert answer.get("queued", False) == was_live
        if keyed:
            self.keys.append((message, answer["turn_id"]))

    @precondition(lambda self: self.keys)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        message, turn_id = data.draw(st.sampled_from(self.keys))
        answer = self.run(self.bench.send(message, session_id=SESSION, idempotency_key=message))
        assert answer["deduplicated"] and answer["turn_id"] == turn_id

    @precondition(lambda self: self.parked)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        message = data.draw(st.sampled_from(self.parked))
        entry_id = self.run(self._entry_of(message))
        self.parked.remove(message)
        answer = self.run(self.bench.call("harness::unqueue", session_id=SESSION, entry_id=entry_id))
        assert answer == {"removed": True}

    @precondition(lambda self: self.parked)
    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(self.parked) - 1))
        entry_id = self.run(self._entry_of(self.parked[place]))
        self.parked[place] = self.fresh()
        answer = self.run(
            self.bench.call("harness::edit_queued", session_id=SESSION, entry_id=entry_id, message=self.parked[place])
        )
        assert answer == {"updated": True}

    @rule()
    def stop(self) -> None:
        was_live, self.live = self.live, False
        self.said += self.parked
        self.parked = []
        assert self.run(self.bench.call("harness::stop", session_id=SESSION)) == {"stopping": was_live}
        self.run(self._let_out())

    @precondition(lambda self: self.live)
    @rule()
    def answer(self) -> None:
        heard = [m["content"][0]["text"] for m in self.bench.model.heard["messages"] if m["role"] == "user"]  # type: ignore[attr-defined]
        assert heard == self.said
        self.live = bool(self.parked)
        self.said += self.parked
        self.parked = []
        self.run(self._let_out())

    @rule()
    def crash(self) -> None:
        self.bench.crash()
        model = self.bench.model = Gated()
        self.run(self.bench.boot())
        assert self.bench.model is model

    async def _let_out(self) -> None:
        """End the generations that are waiting; one that was stopped is waited for by nobody else."""
        waiting = self.bench.model.waiting  # type: ignore[attr-defined]
        ending = list(waiting)
        for generation in ending:
            generation.set_result(None)
        await until(lambda: not any(generation in waiting for generation in ending))

    async def _entry_of(self, message: str) -> str:
        rows = (await self.bench.call("harness::status", session_id=SESSION, verbose=True))["queued"]
        return next(row["entry_id"] for row in rows if row["message"]["content"][0]["text"] == message)

    @invariant()
    def transcript_and_queue_are_what_was_said(self) -> None:
        if self.count:
            self.run(self._compare())

    async def _compare(self) -> None:
        path = await self.bench.path_of(SESSION)
        said = [i["message"]["content"][0]["text"] for i in path if i.get("message", {}).get("role") == "user"]
        assert said == self.said
        status = await self.bench.call("harness::status", session_id=SESSION, verbose=True)
        assert [row["message"]["content"][0]["text"] for row in status.get("queued", [])] == self.parked
        assert (status["status"] == "running") == self.live

    def teardown(self) -> None:
        if not hasattr(self, "runner"):
            return
        self.bench.crash()
        self.runner.close()
        shutil.rmtree(self.path, ignore_errors=True)


def _budget(examples: int, steps: int) -> settings:
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    return settings(max_examples=examples, stateful_step_count=steps, deadline=None, phases=phases)


@pytest.mark.requirement("entry.machine")
def test_any_order_of_requests_and_crashes_keeps_transcript_and_queue() -> None:
    run_state_machine_as_test(Conversation, settings=_budget(6, 12))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.requirement("entry.machine")
def test_many_orders_of_requests_and_crashes_keep_transcript_and_queue() -> None:
    run_state_machine_as_test(Conversation, settings=_budget(120, 25))
