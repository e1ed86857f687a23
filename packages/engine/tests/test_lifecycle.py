"""The life of a connection beyond the conformance suite: grace, names, reserved ids, clean-up, an orderly end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from iii_contracts.spec import FunctionSpec
from iii_embedded.text import one_line
from iii_kit.bus import Call, Invocation
from iii_kit.errors import BusError, EpochEnded
from iii_testing.embedded import Embedded, embedded
from iii_testing.waiting import until
from iii_testing.wire_peer import Failed, wire_peers
from iii_testing.world import ManualWorld

pytestmark = pytest.mark.anyio

ANY = FunctionSpec("t::any", "of a test", None, None, "t/invalid")


@asynccontextmanager
async def listening(world: Any = None) -> AsyncGenerator[tuple[Embedded, Any]]:
    async with embedded(world, listening=True) as stack, wire_peers(stack.url) as connecting:
        yield stack, connecting


def registered(stack: Embedded, function_id: str, namespace: str = "default") -> bool:
    return stack.engine.registry.find(namespace, function_id) is not None


@pytest.mark.requirement("engine.connect.grace")
async def test_a_silent_worker_ends_up_in_default_when_the_grace_is_over(world: ManualWorld) -> None:
    async with listening(world) as (stack, connecting):
        peer = await connecting(announce=False)
        await peer.register("t::silent")
        await world.clock.advance(4.9)
        assert not registered(stack, "t::silent")
        await world.clock.advance(0.2)
        assert registered(stack, "t::silent")
        await peer.announce(namespace="elsewhere")
        await peer.register("t::later")
        assert registered(stack, "t::later")


@pytest.mark.requirement("engine.connect.refused_announcement")
@pytest.mark.parametrize("data", [{"namespace": " "}, {"name": 5}, {"pid": "many"}, [], None])
async def test_a_refused_announcement_leaves_the_registrations_waiting(data: Any) -> None:
    async with listening() as (stack, connecting):
        peer = await connecting(announce=False)
        await peer.register("t::waits")
        with pytest.raises(Failed) as caught:
            await peer.outcome(await peer.start("engine::workers::register", data))
        blank = data == {"namespace": " "}
        assert caught.value.code == ("INVALID_NAMESPACE" if blank else "deserialization_error")
        assert not registered(stack, "t::waits")
        await peer.announce(namespace="ns")
        assert registered(stack, "t::waits", "ns")


@pytest.mark.requirement("engine.connect.waiting_dropped")
async def test_what_still_waits_when_a_connection_ends_is_dropped(world: ManualWorld) -> None:
    async with listening(world) as (stack, connecting):
        peer = await connecting(announce=False)
        await peer.register("t::never")
        await peer.close()
        await until(lambda: peer.id not in stack.engine.registry.workers)
        await world.clock.advance(10)
        assert not registered(stack, "t::never")


@pytest.mark.requirement("engine.names.sanitized")
@pytest.mark.parametrize(
    ("given", "kept"),
    [(" a\nb\x00\u202ec\u2028 ", "abc"), ("x" * 300, "x" * 280), ("\u200f \t", None), ("", None), (None, None)],
)
def test_names_lose_what_cannot_be_shown(given: str | None, kept: str | None) -> None:
    assert one_line(given) == kept


@pytest.mark.requirement("engine.names.lease")
async def test_a_renamed_worker_holds_both_names_and_loses_all_when_it_wants_a_third_that_is_held() -> None:
    async with listening() as (stack, connecting):
        peer, other = await connecting("first\n"), await connecting("held")
        await peer.register("t::mine")
        await peer.announce("second")
        late = await connecting(announce=False)
        await late.start("engine::workers::register", {"name": "first"}, action={"type": "void"})
        assert (await late.expect("registrationrejected"))["owner_worker_id"] == peer.id
        assert await late.over() == 1005
        await peer.start("engine::workers::register", {"name": "held"}, action={"type": "void"})
        rejected = await peer.expect("registrationrejected")
        assert (rejected["worker_name"], rejected["owner_worker_id"]) == ("held", other.id)
        await peer.over()
        assert not registered(stack, "t::mine")
        await connecting("first")
        await connecting("second")


@pytest.mark.requirement("engine.builtins.protected")
async def test_functions_and_types_of_the_engine_cannot_be_taken_over_or_taken_away() -> None:
    async with listening() as (stack, connecting):
        peer = await connecting()
        for id_ in ("state::get", "engine::functions::list", "engine::queue::enqueue", "configuration::get"):
            await peer.register(id_)
            rejected = await peer.expect("registrationrejected", function_id=id_)
            assert rejected["code"] == "FUNCTION_NAMESPACE_CONFLICT"
            assert (rejected["namespace"], rejected["owner_worker_id"]) == ("default", "")
            await peer.send({"type": "unregisterfunction", "id": id_})
        await peer.send({"type": "registertriggertype", "id": "state", "description": "mine"})
        await peer.send({"type": "unregistertriggertype", "id": "state"})
        await peer.settle()
        assert await peer.call("state::get", {"scope": "s", "key": "k"}) is None
        assert (await peer.call("engine::triggers::info", {"id": "state"}))["worker_name"] == "iii-state"
        await peer.register("engine::new")
        assert registered(stack, "engine::new")


@pytest.mark.requirement("engine.builtins.protected")
async def test_ids_of_a_worker_of_this_process_name_their_owner() -> None:
    async with listening() as (stack, connecting):

        async def run(_: Any, __: Invocation) -> Any:
            return "local"

        bus = stack.attach("harness")
        bus.serve(ANY, run)
        peer = await connecting()
        await peer.register("t::any")
        assert (await peer.expect("registrationrejected"))["owner_worker_id"] == bus.worker_id
        assert await peer.call("t::any") == "local"
        with pytest.raises(ValueError, match="already served"):
            stack.attach("other").serve(ANY, run)
        with pytest.raises(ValueError, match="connected already"):
            stack.attach("harness")


@pytest.mark.requirement("engine.cleanup.order")
async def test_callers_of_a_lost_worker_hear_of_it_when_its_ids_are_free_and_its_own_calls_are_dropped() -> None:
    async with listening() as (stack, connecting):
        caller, dying = await connecting(), await connecting("dying")
        await dying.register("t::dies")
        await caller.register("t::answers_late")
        await dying.start("t::answers_late", {})
        late = await caller.expect("invokefunction")
        id_ = await caller.start("t::dies", {})
        await dying.expect("invokefunction")
        dying.drop()
        with pytest.raises(Failed) as caught:
            await caller.outcome(id_)
        assert (caught.value.code, caught.value.message) == ("invocation_stopped", "Invocation stopped")
        heir = await connecting("dying")
        await heir.register("t::dies")
        assert not heir.seen("registrationrejected")
        await caller.answer(late, result="nobody waits")
        await caller.settle()
        assert len(stack.engine.registry.workers) >= 2


@pytest.mark.requirement("engine.reattach.token")
async def test_a_reattach_ends_the_old_connection_before_the_next_frame_is_read() -> None:
    async with listening() as (_, connecting):
        old, caller, new = await connecting("w"), await connecting(), await connecting(announce=False)
        await old.register("t::mine")
        waiting = await caller.start("t::mine", {})
        await old.expect("invokefunction")
        for token in ("wrong", "", old.token[:-1]):
            await new.send({"type": "reattach", "previous_worker_id": old.id, "reattach_token": token})
        await new.send({"type": "reattach", "previous_worker_id": new.id, "reattach_token": new.token})
        await new.send({"type": "reattach", "previous_worker_id": "nonsense", "reattach_token": old.token})
        await new.settle()
        await old.settle()
        await new.send({"type": "reattach", "previous_worker_id": old.id, "reattach_token": old.token})
        await new.send({"type": "registerfunction", "id": "t::mine"})
        await new.announce("w")
        assert not new.seen("registrationrejected")
        with pytest.raises(Failed, match="invocation_stopped"):
            await caller.outcome(waiting)
        assert await old.over() == 1006


@pytest.mark.requirement("engine.close.orderly")
async def test_a_stopping_engine_sends_what_waits_and_says_that_it_goes() -> None:
    async with listening() as (stack, connecting):
        peer = await connecting()
        await peer.register("t::slow")
        bus = stack.attach("local")

        async def hang(_: Any, __: Invocation) -> Any:
            await asyncio.Event().wait()

        bus.serve(ANY, hang)
        id_ = await peer.start("t::any", {})
        local = asyncio.ensure_future(bus.call("t::slow", {}))
        await peer.expect("invokefunction")
        await stack.engine.close()
        with pytest.raises(Failed, match="invocation_stopped"):
            await peer.outcome(id_)
        assert await peer.over() == 1001
        with pytest.raises(EpochEnded):
            await local


@pytest.mark.requirement("engine.crash")
async def test_after_a_crash_nothing_is_told_finished_or_tidied_up() -> None:
    async with listening() as (stack, connecting):
        peer, bus = await connecting(), stack.attach("local")
        await peer.register("t::remote")
        tidied: list[type[BaseException]] = []

        async def run(_: Any, __: Invocation) -> Any:
            try:
                await bus.call("t::remote", {})
            finally:
                try:
                    await bus.void("t::remote", {"tidy": True})
                except BusError as error:
                    tidied.append(type(error))

        bus.serve(ANY, run)
        id_ = await peer.start("t::any", {})
        await peer.expect("invokefunction")
        calling = asyncio.ensure_future(bus.call("t::any", {}))
        direct = asyncio.ensure_future(bus.call("t::remote", {}))
        await peer.expect("invokefunction", count=3)
        frames = len(peer.frames)
        stack.engine.crash()
        for waiting in (calling, direct):
            with pytest.raises(EpochEnded):
                await waiting
        assert await peer.over() == 1006
        assert peer.frames[frames:] == [] and not peer.seen("invocationresult", invocation_id=id_)
        await until(lambda: len(tidied) == 2)
        assert tidied == [EpochEnded, EpochEnded]
        for use in (bus.call("x", {}), bus.void("x", {}), bus.enqueue("q", "x", {}), bus.sequence([Call("x", {})])):
            with pytest.raises(EpochEnded):
                await use
        for register in (lambda: bus.serve(ANY, run), lambda: bus.bind("state", "x", {})):
            with pytest.raises(EpochEnded):
                register()
        stack.store.close()
        await stack.restart()
        assert (await connecting()).id


@pytest.mark.requirement("engine.workers.active")
async def test_open_calls_of_both_sides_are_counted() -> None:
    async with listening() as (_, connecting):
        caller, owner = await connecting("caller", pid=1), await connecting("owner", pid=2)
        await owner.register("t::slow")
        calls = [await caller.start("t::slow", {}) for _ in range(3)]
        await owner.expect("invokefunction", count=3)

        async def active() -> dict[str, int]:
            rows = (await owner.call("engine::workers::list"))["workers"]
            return {row["name"]: row["active_invocations"] for row in rows if row["name"] in ("caller", "owner")}

        assert await active() == {"caller": 3, "owner": 4}
        for frame in owner.seen("invokefunction"):
            await owner.answer(frame)
        for id_ in calls:
            await caller.outcome(id_)
        assert await active() == {"caller": 0, "owner": 1}
