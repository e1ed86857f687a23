"""Trigger types and bindings on a bus (engine spec 9, 21.6, 21.7, siblings 1.4)."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from iii_contracts.model import Closed
from iii_kit.bindings import Bindings
from iii_kit.bus import Binding, Bus, Call, Invocation, Opts
from iii_kit.errors import BusError
from iii_testing.buses import Wire, trigger_type, unique
from iii_testing.waiting import until


class Filter(Closed):
    """The config of a binding."""

    session_id: str | None = None


class Recorder:
    """A provider that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    async def bound(self, binding: Binding) -> None:
        self.told.append(binding)
        if (binding.config or {}).get("refuse"):
            raise BusError("trigger_registration_failed", "not this config")

    async def unbound(self, binding_id: str) -> None:
        self.told.append(binding_id)

    def renewed(self) -> None:
        self.told.append("renewed")


async def listen(wire: Wire, bus: Bus, heard: list[Any]) -> str:
    async def hear(data: Any, invocation: Invocation) -> Any:
        heard.append((data, invocation.metadata))

    return (await wire.serve(bus, hear)).id


@pytest.mark.requirement("kit.bus.triggers")
async def test_a_provider_is_told_of_bindings_and_of_their_end(wire: Wire) -> None:
    provider, consumer = await wire.attach(), await wire.attach()
    spec, recorder = trigger_type(Filter), Recorder()
    early = consumer.bind(spec.id, "demo::early", {"session_id": "s"}, metadata={"m": 1})
    provided = provider.provide(spec, recorder)
    await until(lambda: any(isinstance(told, Binding) for told in recorder.told))
    handle = consumer.bind(spec.id, "demo::late", None)
    await until(lambda: sum(isinstance(told, Binding) for told in recorder.told) == 2)
    first, second = [told for told in recorder.told if isinstance(told, Binding)]
    assert (first.function_id, first.config, first.metadata) == ("demo::early", {"session_id": "s"}, {"m": 1})
    assert (second.function_id, second.config or {}, second.metadata) == ("demo::late", {}, None)
    assert recorder.told[0] == "renewed" or wire.over_socket
    handle.close()
    await until(lambda: second.id in recorder.told)
    early.close()
    early.close()
    await until(lambda: first.id in recorder.told)
    provided.close()


@pytest.mark.requirement("kit.bus.triggers")
async def test_bindings_fire_with_their_metadata_where_their_config_matches(wire: Wire) -> None:
    provider, consumer = await wire.attach(), await wire.attach()
    spec = trigger_type(Filter)
    bindings, heard = Bindings(spec), []
    provider.provide(spec, bindings)
    fn = await listen(wire, consumer, heard)
    for session, metadata in (("a", {"n": 1}), ("b", {"n": 2}), (None, None)):
        consumer.bind(spec.id, fn, {} if session is None else {"session_id": session}, metadata=metadata)
    await until(lambda: len(bindings) == 3)
    for call in bindings.fire({"at": 1}, lambda config: config.session_id in (None, "a")):
        assert call.kind == "void"
        await provider.void(call.fn, call.data, opts=call.opts)
    await until(lambda: len(heard) == 2)
    assert sorted(heard, key=str) == sorted([({"at": 1}, {"n": 1}), ({"at": 1}, None)], key=str)


@pytest.mark.requirement("kit.bus.refused")
async def test_a_refused_binding_is_logged_and_not_kept(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    provider, consumer = await wire.attach(), await wire.attach()
    spec = trigger_type(Filter)
    bindings = Bindings(spec)
    provider.provide(spec, bindings)
    with caplog.at_level(logging.ERROR):
        consumer.bind(spec.id, "demo::f", {"unknown": 1})
        consumer.bind(spec.id, "demo::f", {"session_id": "s"})
        await until(lambda: len(bindings) == 1)
        await until(lambda: "unknown field `unknown`" in caplog.text)
    (bound,) = bindings
    assert bound.config == Filter(session_id="s")


@pytest.mark.requirement("kit.bus.triggers")
async def test_a_binding_ends_with_its_worker(wire: Wire) -> None:
    provider, consumer = await wire.attach(), await wire.attach()
    spec, recorder = trigger_type(Filter), Recorder()
    provider.provide(spec, recorder)
    consumer.bind(spec.id, "demo::f", {})
    await until(lambda: any(isinstance(told, Binding) for told in recorder.told))
    closing = consumer.close()  # type: ignore[attr-defined]
    if closing is not None:
        await closing
    await until(lambda: recorder.told[-1] == next(told.id for told in recorder.told if isinstance(told, Binding)))


@pytest.mark.requirement("kit.bus.triggers")
async def test_events_reach_a_function_in_its_own_namespace(wire: Wire) -> None:
    provider, consumer = await wire.attach(), await wire.attach()
    heard: list[Any] = []
    fn = await listen(wire, consumer, heard)
    await provider.sequence([Call(fn, {"n": 1}, kind="void", opts=Opts(namespace="default"))])
    await provider.void(unique(), {}, opts=Opts(namespace="elsewhere"))
    await until(lambda: heard)
