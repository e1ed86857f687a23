"""A connection of `SdkBus` is an epoch: what began on it ends with it (design; engine spec 21.5)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from iii_contracts.model import Closed
from iii_kit.bindings import Bindings
from iii_kit.bus import Call, Invocation, TxHandler
from iii_kit.errors import BusError, EpochEnded, PartialSequence
from iii_kit.sdk_bus import SdkBus, SdkOptions, connect
from iii_kit.storage import Tx
from iii_testing.buses import Wire, trigger_type, unique
from iii_testing.embedded import Embedded, embedded
from iii_testing.relay import Relay, relaying
from iii_testing.waiting import until, until_async


class Filter(Closed):
    """The config of a binding."""


@pytest.fixture
async def stack() -> AsyncIterator[Embedded]:
    async with embedded(listening=True) as running:
        yield running


@pytest.fixture
async def relay(stack: Embedded) -> AsyncIterator[Relay]:
    async with relaying(stack.url) as between:
        yield between


@pytest.fixture
async def wire(stack: Embedded, relay: Relay) -> AsyncIterator[Wire]:
    # Closed before the relay: nothing knocks at a listener that is closing.
    async with AsyncExitStack() as ends:
        yield await ends.enter_async_context(Wire("sdk", stack.url, stack.store, stack))


async def behind(wire: Wire, relay: Relay) -> SdkBus:
    """A worker whose connection the relay can cut."""
    bus = await wire.attach(url=relay.url)
    assert isinstance(bus, SdkBus)
    return bus


class Counted:
    """A function that counts its calls and holds them back until `gate` is set."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.ended: list[str] = []
        self.gate = asyncio.Event()

    async def __call__(self, data: Any, _: Invocation) -> Any:
        self.calls.append(data)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        return {}


@pytest.mark.requirement("kit.epoch.begin")
async def test_each_connection_runs_the_work_of_an_epoch_anew_under_a_new_id(wire: Wire, relay: Relay) -> None:
    bus = await behind(wire, relay)
    begun: list[str] = []
    ended: list[str] = []

    async def work() -> None:
        begun.append(bus.worker_id)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(bus.worker_id)
            raise

    handle = bus.each_epoch(work)
    await until(lambda: begun)
    for count in (2, 3):
        relay.cut()
        await until(lambda: len(begun) == count)  # noqa: B023
    assert len(set(begun)) == 3
    assert all(begun)
    assert len(ended) == 2
    handle.close()
    relay.cut()
    await until(lambda: len(ended) == 3)
    await bus.connected()
    assert len(begun) == 3


@pytest.mark.requirement("kit.epoch.begin")
async def test_a_failure_of_the_work_of_an_epoch_ends_that_work_alone(wire: Wire, relay: Relay) -> None:
    bus = await behind(wire, relay)
    attempts: list[int] = []

    async def work() -> None:
        attempts.append(1)
        raise ValueError("cannot start")

    bus.each_epoch(work)
    await until(lambda: attempts)
    relay.cut()
    await until(lambda: len(attempts) == 2)
    await bus.connected()
    assert (await bus.call("engine::workers::list", {}))["workers"]


@pytest.mark.requirement("kit.epoch.calls")
async def test_calls_in_flight_end_with_the_connection_at_once(wire: Wire, relay: Relay) -> None:
    bus, callee = await behind(wire, relay), await wire.attach()
    counted = Counted()
    spec = await wire.serve(callee, counted)
    calling = [asyncio.ensure_future(bus.call(spec.id, {"n": n})) for n in range(3)]
    sequence = asyncio.ensure_future(bus.sequence([Call(spec.id, {"n": 3})]))
    await until(lambda: len(counted.calls) == 4)
    relay.cut(reopen=False)
    async with asyncio.timeout(5):
        for call in calling:
            with pytest.raises(EpochEnded):
                await call
        with pytest.raises(PartialSequence) as partial:
            await sequence
    assert isinstance(partial.value.cause, EpochEnded)
    counted.gate.set()


@pytest.mark.requirement("kit.epoch.calls")
async def test_nothing_that_was_called_while_offline_is_sent_after_the_reconnect(wire: Wire, relay: Relay) -> None:
    bus, callee = await behind(wire, relay), await wire.attach()
    counted = Counted()
    counted.gate.set()
    spec = await wire.serve(callee, counted)
    relay.cut(reopen=False)

    async def offline() -> bool:
        try:
            await bus.call(spec.id, {"offline": True})
        except EpochEnded:
            return False
        except BusError as error:
            return error.code == "not_connected"
        return False

    await until_async(offline)
    for send in (bus.void(spec.id, {"offline": True}), bus.enqueue("q", spec.id, {"offline": True})):
        with pytest.raises(BusError, match="not connected"):
            await send
    sent_before = len(counted.calls)
    relay.open = True
    await bus.connected()
    await bus.call(spec.id, {"online": True})
    assert counted.calls[sent_before:] == [{"online": True}]


@pytest.mark.requirement("kit.epoch.work")
async def test_handlers_are_cancelled_and_what_they_still_want_to_send_is_not_sent(wire: Wire, relay: Relay) -> None:
    bus, caller = await behind(wire, relay), await wire.attach()
    counted = Counted()
    counted.gate.set()
    target = await wire.serve(caller, counted)
    started, late, gate = asyncio.Event(), [], asyncio.Event()

    async def child() -> None:
        await gate.wait()
        try:
            await bus.call(target.id, {"from": "child"})
        except BusError as error:
            late.append(error)

    async def handler(_: Any, __: Invocation) -> Any:
        task = asyncio.create_task(child())
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            try:
                await bus.call(target.id, {"from": "finally"})
            except BusError as error:
                late.append(error)
            await task

    spec = await wire.serve(bus, handler)
    calling = asyncio.ensure_future(caller.call(spec.id, {}))
    await started.wait()
    relay.cut(reopen=False)
    await until(lambda: late)
    relay.open = True
    await bus.connected()
    gate.set()
    await until(lambda: len(late) == 2)
    assert all(isinstance(error, EpochEnded) for error in late)
    with pytest.raises(BusError) as stopped:
        await calling
    assert stopped.value.code == "invocation_stopped"
    await bus.call(target.id, {"from": "new"})
    assert counted.calls == [{"from": "new"}]


@pytest.mark.requirement("kit.epoch.registrations")
async def test_functions_and_bindings_are_there_again_and_providers_start_afresh(wire: Wire, relay: Relay) -> None:
    provider, consumer = await behind(wire, relay), await wire.attach()
    spec = trigger_type(Filter)
    renewals: list[int] = []

    class Watched(Bindings):
        def renewed(self) -> None:
            renewals.append(len(self))
            super().renewed()

    bindings, counted = Watched(spec), Counted()
    counted.gate.set()
    provider.provide(spec, bindings)
    served = await wire.serve(provider, counted)
    kept, gone = consumer.bind(spec.id, "demo::kept", {}), consumer.bind(spec.id, "demo::gone", {})
    await until(lambda: len(bindings) == 2)
    relay.cut(reopen=False)
    gone.close()
    renewals.clear()
    relay.open = True
    await until(lambda: renewals == [2] and [bound.binding.function_id for bound in bindings] == ["demo::kept"])
    await wire.callable(consumer, served.id)
    assert await consumer.call(served.id, {}) == {}
    kept.close()
    await until(lambda: len(bindings) == 0)


@pytest.mark.requirement("kit.epoch.registrations")
async def test_a_worker_outlives_a_restart_of_the_engine(wire: Wire, stack: Embedded) -> None:
    bus = await wire.attach()
    counted, begun = Counted(), []
    counted.gate.set()
    spec = await wire.serve(bus, counted)

    async def work() -> None:
        begun.append(bus.worker_id)

    bus.each_epoch(work)
    await until(lambda: begun)
    await bus.call("state::set", {"scope": "s", "key": "k", "value": {"kept": True}})
    await stack.stop()
    await stack.restart()
    await until(lambda: len(begun) == 2)
    assert await bus.call("state::get", {"scope": "s", "key": "k"}) == {"kept": True}
    await wire.callable(bus, spec.id)
    assert await bus.call(spec.id, {}) == {}


@pytest.mark.requirement("kit.epoch.transactions")
async def test_a_transaction_commits_though_its_connection_ends_and_is_answered_to_nobody(
    wire: Wire, relay: Relay, stack: Embedded
) -> None:
    bus, caller = await behind(wire, relay), await wire.attach()
    loop, entered, go = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def run(tx: Tx, _: Any, __: Invocation) -> Any:
        loop.call_soon_threadsafe(entered.set)
        go.wait(10)
        tx.execute("CREATE TABLE committed(a)")
        return {}

    spec = await wire.serve(bus, TxHandler(run))
    calling = asyncio.ensure_future(caller.call(spec.id, {}))
    await entered.wait()
    relay.cut()
    with pytest.raises(BusError) as stopped:
        await calling
    assert stopped.value.code == "invocation_stopped"
    go.set()
    await bus.connected()
    count = "SELECT count(*) FROM sqlite_master WHERE name = 'committed'"

    async def committed() -> bool:
        return await stack.store.read(lambda db: db.execute(count).fetchone()) == (1,)

    await until_async(committed)


@pytest.mark.requirement("kit.epoch.refused")
async def test_a_taken_name_is_told_in_words_and_ends_the_attempt(wire: Wire) -> None:
    name = unique("worker")
    first = await wire.attach(name)
    with pytest.raises(BusError) as refused:
        second = await wire.attach(name)
        await second.connected()  # type: ignore[attr-defined]
        await second.refused()  # type: ignore[attr-defined]
    assert refused.value.code == "WORKER_NAMESPACE_CONFLICT"
    assert name in refused.value.message
    assert (await first.call("engine::workers::list", {}))["workers"]


@pytest.mark.requirement("kit.epoch.close")
async def test_a_bus_that_never_connected_says_so_and_closes() -> None:
    async with (
        relaying("ws://127.0.0.1:9") as nowhere,
        connect(SdkOptions(unique("worker"), url=nowhere.url)) as bus,
    ):
        with pytest.raises(BusError) as offline:
            await bus.call("engine::workers::list", {})
        assert offline.value.code == "not_connected"
        with pytest.raises(BusError, match=r"no engine at ws://127\.0\.0\.1:\d+ within 0\.1 s"):
            await bus.connected(0.1)
        await bus.close()
        await bus.close()


@pytest.mark.requirement("kit.epoch.close")
async def test_closing_ends_the_work_of_the_bus_and_later_uses_fail_at_once(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    counted = Counted()
    spec = await wire.serve(bus, counted)
    calling = asyncio.ensure_future(caller.call(spec.id, {}))
    await until(lambda: counted.calls)
    handle = bus.bind("demo::none", spec.id, {})
    await bus.close()  # type: ignore[attr-defined]
    assert counted.ended == ["cancelled"]
    handle.close()
    with pytest.raises(BusError):
        await calling
    for use in (bus.call(spec.id, {}), bus.void(spec.id, {}), bus.channel()):
        with pytest.raises(BusError):
            await use
