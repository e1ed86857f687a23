"""Trigger types and bindings beyond the conformance suite: moves between namespaces, silent and leaving providers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from iii_contracts.model import Wire
from iii_contracts.spec import FunctionSpec, TriggerSpec
from iii_kit.bindings import Bindings
from iii_kit.bus import Binding, Invocation
from iii_testing.embedded import Embedded, embedded
from iii_testing.waiting import settle, until
from iii_testing.wire_peer import Failed, WirePeer, wire_peers
from iii_testing.world import ManualWorld

pytestmark = pytest.mark.anyio

TYPE = "t::fires"


class Config(Wire):
    """A config."""

    topic: str


SPEC = TriggerSpec("t::local", "of a test", Config, None)


@asynccontextmanager
async def listening(world: Any = None) -> AsyncGenerator[tuple[Embedded, Any]]:
    async with embedded(world, listening=True) as stack, wire_peers(stack.url) as connecting:
        yield stack, connecting


async def provide(peer: WirePeer, type_: str = TYPE, **fields: Any) -> None:
    await peer.send({"type": "registertriggertype", "id": type_, "description": "fires", **fields})
    await peer.settle()


async def bind(peer: WirePeer, id_: str, config: Any = None, type_: str = TYPE, **fields: Any) -> None:
    frame = {"type": "registertrigger", "id": id_, "trigger_type": type_, "function_id": "t::fn", "config": config}
    await peer.send({**frame, **fields})
    await peer.settle()


async def acknowledge(peer: WirePeer, frame: dict[str, Any], error: Any = None) -> None:
    reply = {key: frame[key] for key in ("id", "trigger_type", "function_id")}
    await peer.send({"type": "triggerregistrationresult", **reply, "error": error})
    await peer.settle()


def active(stack: Embedded) -> dict[str, Any]:
    return {bound.id: bound.served_by for bound in stack.engine.triggers.active()}


REFUSED = {"code": "no", "message": "not that"}


@pytest.mark.requirement("engine.bindings.move")
async def test_a_binding_moves_to_its_own_namespace_and_back() -> None:
    async with listening() as (stack, connecting):
        everybody, own, binder = await connecting(), await connecting(namespace="ns"), await connecting(namespace="ns")
        await provide(everybody)
        await bind(binder, "b1")
        await bind(binder, "strict", trigger_namespace="default")
        assert "trigger_namespace" not in await everybody.expect("registertrigger", id="b1")
        await provide(own)
        assert (await own.expect("registertrigger", id="b1"))["trigger_namespace"] == "ns"
        await everybody.expect("unregistertrigger", id="b1")
        assert active(stack) == {"b1": ("ns", TYPE), "strict": ("default", TYPE)}
        own.drop()
        await everybody.expect("registertrigger", id="b1", count=2)
        assert active(stack)["b1"] == ("default", TYPE)
        assert not everybody.seen("unregistertrigger", id="strict")


@pytest.mark.requirement("engine.bindings.strict_namespace")
async def test_a_named_provider_namespace_is_strict() -> None:
    async with listening() as (stack, connecting):
        provider, binder = await connecting(), await connecting()
        await provide(provider)
        await bind(binder, "elsewhere", trigger_namespace="nowhere")
        assert active(stack) == {}
        with pytest.raises(Failed, match="INVALID_NAMESPACE"):
            data = {"trigger_type": TYPE, "function_id": "t::fn", "trigger_namespace": " "}
            await binder.call("engine::register_trigger", data)


@pytest.mark.requirement("engine.bindings.taken_over")
async def test_an_id_bound_again_by_another_connection_is_its_own_from_then_on() -> None:
    async with listening() as (stack, connecting):
        provider, first, second = await connecting(), await connecting(), await connecting()
        await provide(provider)
        await bind(first, "b", {"n": 1})
        await bind(second, "b", {"n": 2})
        await provider.expect("registertrigger", id="b", count=2)
        await first.close()
        await until(lambda: first.id not in stack.engine.registry.workers)
        assert list(active(stack)) == ["b"] and not provider.seen("unregistertrigger")


@pytest.mark.requirement("engine.bindings.provider_alone")
async def test_only_the_provider_of_now_can_refuse_and_it_may_do_so_late() -> None:
    async with listening() as (stack, connecting):
        old, new, binder = await connecting(), await connecting(), await connecting()
        await provide(old)
        await bind(binder, "b")
        frame = await old.expect("registertrigger")
        await provide(new)
        await new.expect("registertrigger")
        for stranger in (old, binder):
            await acknowledge(stranger, frame, REFUSED)
        assert list(active(stack)) == ["b"]
        await acknowledge(new, frame)
        await acknowledge(new, frame, REFUSED)
        assert active(stack) == {}
        assert (await binder.expect("triggerregistrationresult"))["error"] == REFUSED


@pytest.mark.requirement("engine.bindings.engine_refuses")
async def test_a_refused_binding_on_a_type_of_the_engine_leaves_the_earlier_one_in_force() -> None:
    async with listening() as (stack, connecting):
        binder = await connecting()
        await bind(binder, "b", {"scope": "s"}, "state")
        await until(lambda: "b" in active(stack))
        await bind(binder, "b", {"scope": 5}, "state")
        refusal = await binder.expect("triggerregistrationresult", id="b")
        assert refusal["error"]["code"] == "trigger_registration_failed"
        bound = stack.engine.triggers.find("b")
        assert bound is not None and bound.config == b'{"scope": "s"}'


@pytest.mark.requirement("engine.bind_by_function.silent_provider")
async def test_a_silent_provider_makes_a_binding_wait_ten_seconds_and_a_later_refusal_parks_it(
    world: ManualWorld,
) -> None:
    async with listening(world) as (stack, connecting):
        provider, caller = await connecting(), await connecting()
        await provide(provider)
        id_ = await caller.start("engine::register_trigger", {"trigger_type": TYPE, "function_id": "t::fn"})
        frame = await provider.expect("registertrigger")
        await world.clock.advance(9.9)
        await caller.settle()
        assert not caller.seen("invocationresult", invocation_id=id_) and active(stack) == {}
        await world.clock.advance(0.2)
        assert await caller.outcome(id_) == {"id": frame["id"]}
        assert list(active(stack)) == [frame["id"]]
        await acknowledge(provider, frame, REFUSED)
        assert active(stack) == {}


@pytest.mark.requirement("engine.bind_by_function.provider_leaves")
async def test_a_provider_that_leaves_during_the_wait_makes_the_binding_pending() -> None:
    async with listening() as (stack, connecting):
        provider, caller, heir = await connecting(), await connecting(), await connecting()
        await provide(provider)
        id_ = await caller.start("engine::register_trigger", {"trigger_type": TYPE, "function_id": "t::fn"})
        frame = await provider.expect("registertrigger")
        provider.drop()
        assert await caller.outcome(id_) == {"id": frame["id"]}
        assert active(stack) == {}
        await provide(heir)
        await heir.expect("registertrigger", id=frame["id"])


@pytest.mark.requirement("engine.bindings.kept_values")
async def test_what_is_nested_too_deep_to_be_shown_is_not_kept() -> None:
    deep: Any = 1
    for _ in range(110):
        deep = [deep]
    async with listening() as (stack, connecting):
        peer = await connecting()
        await provide(peer)
        await bind(peer, "deep", deep)
        await peer.register("t::deep", metadata=deep)
        assert active(stack) == {} and stack.engine.registry.find("default", "t::deep") is None
        with pytest.raises(Failed, match="nested deeper"):
            data = {"trigger_type": TYPE, "function_id": "t::fn", "config": deep}
            await peer.call("engine::register_trigger", data)
        await peer.call("engine::registered-triggers::list")


class Slow:
    """A provider that takes its time; it notes what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.go = asyncio.Event()

    async def bound(self, binding: Binding) -> None:
        await self.go.wait()
        self.told.append(f"+{binding.id}")

    async def unbound(self, binding_id: str) -> None:
        self.told.append(f"-{binding_id}")

    def renewed(self) -> None:
        self.told.clear()


@pytest.mark.requirement("engine.local.provider_order")
async def test_a_provider_of_this_process_is_asked_one_thing_after_the_other() -> None:
    async with listening() as (stack, _):
        provider = Slow()
        stack.attach("provider").provide(SPEC, provider)
        binder = stack.attach("binder")
        handles = [binder.bind("t::local", "t::fn", {"topic": "t"}) for _ in range(2)]
        for handle in handles:
            handle.close()
            handle.close()
        await settle()
        assert provider.told == []
        provider.go.set()
        await until(lambda: len(provider.told) == 4)
        assert [told[0] for told in provider.told] == ["+", "+", "-", "-"]


@pytest.mark.requirement("engine.local.provider")
async def test_workers_of_this_process_and_at_sockets_provide_for_each_other() -> None:
    async with listening() as (stack, connecting):
        fired: list[Any] = []

        async def run(data: Any, call: Invocation) -> None:
            fired.append((data, call.metadata))

        local, remote = stack.attach("local"), await connecting()
        local.serve(FunctionSpec("t::fn", "of a test", None, None, "t/invalid"), run)
        await provide(remote)
        local.bind(TYPE, "t::fn", {"topic": "t"}, metadata={"m": 1})
        frame = await remote.expect("registertrigger")
        assert (frame["config"], frame["metadata"]) == ({"topic": "t"}, {"m": 1})
        await remote.call("t::fn", {"n": 1}, metadata=frame["metadata"])
        assert fired == [({"n": 1}, {"m": 1})]

        bindings = Bindings(SPEC)
        local.provide(SPEC, bindings)
        await bind(remote, "good", {"topic": "t"}, "t::local", metadata={"m": 2})
        await bind(remote, "bad", {"topic": 5}, "t::local")
        refusal = await remote.expect("triggerregistrationresult", id="bad")
        assert refusal["error"]["code"] == "trigger_registration_failed" and "topic" in refusal["error"]["message"]
        await until(lambda: len(bindings) == 1)
        local.worker.send(bindings.fire({"n": 2}))
        await until(lambda: len(fired) == 2)
        assert fired[1] == ({"n": 2}, {"m": 2})
        await remote.close()
        await until(lambda: len(bindings) == 0)


@pytest.mark.requirement("engine.availability.functions")
async def test_changes_of_functions_are_gathered_and_told_once(world: ManualWorld) -> None:
    async with listening(world) as (stack, connecting):
        peer = await connecting()
        await peer.register("t::seen")
        await peer.send(
            {
                "type": "registertrigger",
                "id": "b",
                "trigger_type": "engine::functions-available",
                "function_id": "t::seen",
                "config": {},
            }
        )
        await until(lambda: "b" in active(stack))
        await world.clock.advance(5)
        count = len(peer.seen("invokefunction"))
        for n in range(20):
            await peer.register(f"t::new{n}")
        await world.clock.advance(5)
        event = await peer.expect("invokefunction", count=count + 1)
        listed = [row["function_id"] for row in event["data"]["functions"]]
        assert {"t::new0", "t::new19", "engine::functions::list"} <= set(listed)
        await peer.register("t::new0", description="told again")
        await world.clock.advance(5)
        await peer.settle()
        assert len(peer.seen("invokefunction")) == count + 1
