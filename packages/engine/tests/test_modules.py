"""State, configuration, cron and publish on the in-process bus: what the wire cases cannot see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from iii_contracts.spec import FunctionSpec
from iii_embedded.local_bus import LocalBus
from iii_kit.bus import Call, Invocation
from iii_kit.errors import BusError, PartialSequence
from iii_kit.world import World
from iii_testing.embedded import Embedded, embedded
from iii_testing.waiting import settle, until
from iii_testing.world import ManualWorld

pytestmark = pytest.mark.anyio

PLACE = {"scope": "s", "key": "k"}


class Recorder:
    """A function that keeps what it is called with."""

    def __init__(self, bus: LocalBus, name: str = "t::fn", answer: Any = None) -> None:
        self.calls: list[Any] = []
        self.answer = answer
        bus.serve(FunctionSpec(name, "of a test", None, None, "invalid"), self._run)

    async def _run(self, request: Any, _: Invocation) -> Any:
        self.calls.append(request)
        return self.answer


@asynccontextmanager
async def engine(world: World | None = None, *, inline: bool = False) -> AsyncGenerator[tuple[Embedded, LocalBus]]:
    async with embedded(world, inline=inline) as stack:
        yield stack, stack.attach("tests")


@pytest.mark.requirement("state.set.durable")
async def test_what_was_answered_is_there_after_a_crash() -> None:
    async with engine() as (stack, bus):
        value = {"n": [1, 2.5, None, "é"], "deep": {"x": 2**63}}
        await bus.call("state::set", {**PLACE, "value": value})
        stack.crash()
        await stack.restart()
        assert await stack.attach("tests").call("state::get", PLACE) == value


@pytest.mark.requirement("state.trigger.after_commit")
async def test_an_event_leaves_only_when_its_write_is_kept() -> None:
    async with engine() as (_, bus):
        seen = Recorder(bus)
        bus.bind("state", "t::fn", {"scope": "s"})
        await settle()
        await bus.call("state::set", {**PLACE, "value": 1})
        await until(lambda: len(seen.calls) == 1)
        deep: Any = 1
        for _ in range(120):
            deep = [deep]
        with pytest.raises((BusError, PartialSequence)):
            await bus.sequence(
                [
                    Call("state::update", {**PLACE, "ops": [{"type": "set", "path": "", "value": {}}]}),
                    Call(
                        "state::update",
                        {**PLACE, "ops": [{"type": "append", "path": list("abcdefgh"), "value": deep}]},
                    ),
                ]
            )
        await bus.call("state::delete", PLACE)
        await until(lambda: len(seen.calls) == 3)
        assert [call["event_type"] for call in seen.calls] == ["state:created", "state:updated", "state:deleted"]
        assert seen.calls[-1]["old_value"] == {}, "the update that failed left nothing"


@pytest.mark.requirement("state.list.insertion_order")
async def test_values_are_listed_in_the_order_of_their_first_write() -> None:
    async with engine() as (_, bus):
        for key in ("b", "a", "c"):
            await bus.call("state::set", {"scope": "s", "key": key, "value": key})
        await bus.call("state::set", {"scope": "s", "key": "b", "value": "b again"})
        assert await bus.call("state::list", {"scope": "s"}) == ["b again", "a", "c"]


@pytest.mark.requirement("triggers.condition")
@pytest.mark.parametrize(("answer", "runs"), [(False, False), (None, True), (0, True)])
async def test_a_condition_is_asked_before_its_function(answer: Any, runs: bool) -> None:
    async with engine() as (_, bus):
        condition, seen = Recorder(bus, "t::condition", answer), Recorder(bus)
        bus.bind("state", "t::fn", {"condition_function_id": "t::condition"})
        bus.bind("subscribe", "t::fn", {"topic": "x", "condition_function_id": "t::condition"})
        await settle()
        await bus.call("state::set", {**PLACE, "value": 1})
        await bus.call("publish", {"topic": "x", "data": 5})
        await until(lambda: len(condition.calls) == 2)
        await settle()
        assert len(seen.calls) == (2 if runs else 0)


async def test_a_condition_that_fails_skips() -> None:
    async with engine() as (_, bus):
        seen, other = Recorder(bus), Recorder(bus, "t::other")
        bus.bind("subscribe", "t::fn", {"topic": "x", "condition_function_id": "t::nowhere"})
        bus.bind("subscribe", "t::other", {"topic": "x"})
        await settle()
        await bus.call("publish", {"topic": "x", "data": 5})
        await until(lambda: other.calls == [5])
        await settle()
        assert seen.calls == []


@pytest.mark.requirement("configuration.schema.this_run")
async def test_after_a_restart_an_entry_cannot_be_set_until_its_owner_declares_it_again() -> None:
    entry = {"id": "w", "name": "W", "description": "d", "schema": {"type": "object"}}
    async with engine() as (stack, bus):
        await bus.call("configuration::register", {**entry, "initial_value": {"n": 1}})
        stack.crash()
        await stack.restart()
        bus = stack.attach("tests")
        assert (await bus.call("configuration::get", {"id": "w"}))["value"] == {"n": 1}
        assert (await bus.call("configuration::schema", {"id": "w"}))["schema"] is None
        with pytest.raises(BusError, match="SCHEMA_UNAVAILABLE"):
            await bus.call("configuration::set", {"id": "w", "value": {}})
        await bus.call("configuration::register", entry)
        with pytest.raises(BusError, match="SCHEMA_INVALID"):
            await bus.call("configuration::set", {"id": "w", "value": 5})
        assert (await bus.call("configuration::set", {"id": "w", "value": {}}))["old_value"] == {"n": 1}


@pytest.mark.requirement("configuration.ensure.preserves")
async def test_ensure_seeds_once_and_never_replaces() -> None:
    entry = {"id": "w", "name": "W", "description": "d", "schema": {"type": ["object", "null"]}}
    async with engine() as (_, bus):
        first = await bus.call("configuration::ensure", {**entry, "initial_value": {"n": 1}})
        assert first == {"action": "seeded", "entry": {**entry, "value": {"n": 1}}}
        second = await bus.call("configuration::ensure", {**entry, "name": "V", "initial_value": {"n": 2}})
        assert second == {"action": "preserved", "entry": {**entry, "name": "V", "value": {"n": 1}}}
        await bus.call("configuration::set", {"id": "w", "value": None})
        third = await bus.call("configuration::ensure", {**entry, "initial_value": {"n": 3}})
        assert third["action"] == "seeded" and third["entry"]["value"] == {"n": 3}
        with pytest.raises(BusError, match="missing field `initial_value`"):
            await bus.call("configuration::ensure", entry)


@pytest.mark.requirement("configuration.schema.bad")
@pytest.mark.parametrize("schema", [{"type": "nonsense"}, 5, {"$ref": "http://127.0.0.1/none"}])
async def test_a_schema_that_is_none_is_accepted_and_refuses_every_value(schema: Any) -> None:
    async with engine() as (_, bus):
        entry = {"id": "w", "name": "W", "description": "d", "schema": schema}
        assert (await bus.call("configuration::register", entry))["value"] is None
        with pytest.raises(BusError) as caught:
            await bus.call("configuration::set", {"id": "w", "value": 1})
        assert caught.value.code == "SCHEMA_INVALID" and "schema itself is invalid" in caught.value.message


async def test_all_violations_are_named() -> None:
    async with engine() as (_, bus):
        schema = {"type": "object", "required": ["n"], "properties": {"s": {"type": "string"}}}
        await bus.call("configuration::register", {"id": "w", "name": "W", "description": "d", "schema": schema})
        with pytest.raises(BusError) as caught:
            await bus.call("configuration::set", {"id": "w", "value": {"s": 5}})
        assert '"n" is a required property; 5 is not of type "string" at /s' in caught.value.message


@pytest.mark.requirement("cron.no_overlap")
async def test_a_run_is_awaited_and_missed_times_are_skipped(world: ManualWorld) -> None:
    async with engine(world) as (_, bus):
        release, ticks = asyncio.Event(), []

        async def run(tick: Any, _: Invocation) -> None:
            ticks.append(tick)
            await release.wait()

        bus.serve(FunctionSpec("t::tick", "of a test", None, None, "invalid"), run)
        bus.bind("cron", "t::tick", {"expression": "*/10 * * * * *"})
        await settle()
        await world.advance(35)
        assert [tick["scheduled_time"] for tick in ticks] == ["2026-01-01T00:00:10+00:00"]
        assert ticks[0]["trigger"] == "cron" and ticks[0]["job_id"]
        release.set()
        await settle()
        await world.advance(5)
        assert [tick["scheduled_time"][17:19] for tick in ticks] == ["10", "40"]


@pytest.mark.requirement("cron.replaced")
async def test_a_binding_that_is_withdrawn_or_bound_anew_keeps_no_old_schedule(world: ManualWorld) -> None:
    async with engine(world) as (_, bus):
        seen = Recorder(bus)
        old = bus.bind("cron", "t::fn", {"expression": "*/10 * * * * *"})
        await settle()
        await world.advance(10)
        old.close()
        bus.bind("cron", "t::fn", {"expression": "5 * * * * *"})
        await settle()
        await world.advance(65)
        assert [tick["scheduled_time"][14:19] for tick in seen.calls] == ["00:10", "01:05"]
