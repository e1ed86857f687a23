"""What the harness needs of others may come late, go away and come back (harness-loop 1.1)."""

from __future__ import annotations

from typing import Any

import pytest

import iii_harness.app as harness
from iii_contracts.harness.turn import TurnRequest
from iii_embedded.local_bus import LocalBus
from iii_harness.alone import NotAlone
from iii_harness.patience import PatientCaller
from iii_kit.bus import Call, Invocation
from iii_kit.errors import BusError, EpochEnded, PartialSequence
from iii_kit.sdk_bus import SdkBus, SdkOptions
from iii_siblings import router, sessions
from iii_testing.embedded import Embedded, embedded
from iii_testing.loop_bench import spec
from iii_testing.waiting import driven, until
from iii_testing.world import ManualWorld, manual_world

pytestmark = pytest.mark.anyio


def serve_router(stack: Embedded) -> LocalBus:
    async def chat(_: Any, __: Invocation) -> Any:
        return None

    bus = stack.attach("llm-router")
    bus.serve(spec("router::chat"), chat)
    return bus


@pytest.mark.requirement("entry.needs.waits")
async def test_a_harness_whose_siblings_come_later_names_them_and_is_ready_when_they_are_there() -> None:
    async with embedded(families=(sessions.FAMILY, router.FAMILY)) as stack:
        made = harness.install(stack.attach("harness"), stack.world)
        needs = made._parts.needs
        await until(lambda: needs.missing)
        assert [need.worker for need in needs.missing] == ["session-manager", "llm-router"]
        serve_router(stack)
        await until(lambda: [need.worker for need in needs.missing] == ["session-manager"])
        assert not made._first_start.done()
        sessions.install(stack.attach("session-manager"), stack.world)
        await made.ready()
        await made.drain()


@pytest.mark.requirement("entry.needs.returns")
async def test_what_goes_away_and_comes_back_brings_turns_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with embedded(families=(sessions.FAMILY, router.FAMILY)) as stack:
        sessions.install(stack.attach("session-manager"), stack.world)
        bus = serve_router(stack)
        made = harness.install(stack.attach("harness"), stack.world)
        await made.ready()
        brought: list[str] = []

        async def bring_back() -> None:
            brought.append("back")

        monkeypatch.setattr(made, "_bring_back", bring_back)
        needs = made._parts.needs
        bus.close()
        await until(lambda: needs.missing)
        assert [str(need) for need in needs.missing] == ["llm-router (router::chat)"]
        serve_router(stack)
        await until(lambda: brought)
        assert needs.missing == ()
        await made.drain()


@pytest.mark.requirement("entry.app.alone")
async def test_a_second_harness_under_another_name_finds_the_first_and_does_not_start() -> None:
    async with embedded(families=(sessions.FAMILY, router.FAMILY), listening=True) as stack:
        sessions.install(stack.attach("session-manager"), stack.world)
        serve_router(stack)
        first = harness.install(stack.attach("harness"), stack.world)
        await first.ready()
        bus = SdkBus(SdkOptions("other", url=stack.url))
        second = harness.install(bus, stack.world)
        with pytest.raises(NotAlone, match="worker `harness` serves harness::send"):
            await second.ready()
        await second.drain()
        await bus.close()
        await first.drain()


class Scripted:
    """A caller whose calls fail as written, in order; then they succeed."""

    def __init__(self, *failures: BusError) -> None:
        self.failures = list(failures)
        self.made: list[str] = []

    async def call(self, fn: str, data: Any, *, opts: Any = None) -> Any:
        self.made.append(fn)
        if self.failures:
            raise self.failures.pop(0)
        return {"ok": fn}

    async def sequence(self, calls: list[Call]) -> list[Any]:
        done: list[Any] = []
        for call in calls:
            try:
                done.append(await self.call(call.fn, call.data))
            except BusError as error:
                raise PartialSequence(done, error) from error
        return done


ABSENT = BusError("function_not_found", "Function f not found in namespace default.")
STOPPED = BusError("invocation_stopped", "Invocation stopped")
NO_QUEUE = BusError("enqueue_error", "No queue provider is installed. Run `iii worker add queue` to install one.")
REQUEST = TurnRequest(session_id="s", turn_id="t", step=0)


def patient(world: ManualWorld, *failures: BusError) -> tuple[PatientCaller, Scripted]:
    inner = Scripted(*failures)
    return PatientCaller(inner, world.clock, lambda: None), inner  # type: ignore[arg-type]


async def in_step(caller: PatientCaller, run: Any) -> Any:
    async def step(_: TurnRequest, __: Invocation) -> Any:
        return await run()

    return await caller.in_step(step)(REQUEST, Invocation("harness::turn"))


@pytest.mark.requirement("entry.patience.waits")
@pytest.mark.parametrize("failure", [ABSENT, STOPPED])
async def test_a_call_of_a_step_is_made_again_when_its_worker_is_back(failure: BusError) -> None:
    world = manual_world()
    caller, inner = patient(world, failure, ABSENT, failure)
    answer = await driven(world, in_step(caller, lambda: caller.call("session::messages", {})))
    assert answer == {"ok": "session::messages"}
    assert len(inner.made) == 4


@pytest.mark.requirement("entry.patience.bounds")
@pytest.mark.parametrize(
    ("fn", "failure"),
    [
        ("router::chat", STOPPED),
        ("demo::add", ABSENT),
        ("session::get", BusError("TIMEOUT", "invocation timed out after 10000ms")),
        ("session::get", BusError("session/not_found", "session/not_found: function_not_found")),
    ],
)
async def test_what_may_have_run_or_was_refused_is_not_made_again(fn: str, failure: BusError) -> None:
    world = manual_world()
    caller, inner = patient(world, failure)
    with pytest.raises(BusError):
        await driven(world, in_step(caller, lambda: caller.call(fn, {})))
    assert inner.made == [fn]


@pytest.mark.requirement("entry.patience.bounds")
async def test_outside_a_step_nothing_waits() -> None:
    world = manual_world()
    caller, inner = patient(world, ABSENT)
    with pytest.raises(BusError):
        await caller.call("session::get", {})
    assert inner.made == ["session::get"]


@pytest.mark.requirement("entry.patience.sequence")
async def test_a_sequence_goes_on_from_the_call_that_was_cut_off() -> None:
    world = manual_world()
    caller, inner = patient(world)
    calls = [Call("session::append", {}), Call("state::set", {}), Call("harness::turn", {}, "enqueue", "harness-turn")]
    failures = {1: STOPPED, 3: NO_QUEUE}
    plain = inner.call

    async def call(fn: str, data: Any, *, opts: Any = None) -> Any:
        failure = failures.pop(len(inner.made), None)
        if failure is not None:
            inner.failures.append(failure)
        return await plain(fn, data)

    inner.call = call  # type: ignore[method-assign]
    done = await driven(world, in_step(caller, lambda: caller.sequence(calls)))
    assert done == [{"ok": call.fn} for call in calls]
    assert inner.made == ["session::append", "state::set", "state::set", "harness::turn", "harness::turn"]


@pytest.mark.requirement("entry.patience.drain")
async def test_a_worker_that_ends_waits_no_more() -> None:
    world = manual_world()
    caller, _ = patient(world, *[ABSENT] * 100)
    caller.stop()
    with pytest.raises(EpochEnded):
        await driven(world, in_step(caller, lambda: caller.call("session::get", {})))
