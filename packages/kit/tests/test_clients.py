"""Clients of the siblings: on the embedded engine, and their procedures when things go wrong (siblings 9, 10)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from iii_kit.bus import Call, Caller, ChannelRef, Opts
from iii_kit.clients.configuration import ConfigurationClient, Entry
from iii_kit.clients.engine import EngineClient
from iii_kit.clients.failures import Failure, classify, is_transient
from iii_kit.clients.queue import QueueClient, QueueUndefined
from iii_kit.clients.router import RouterClient
from iii_kit.clients.session import SessionClient, append_call, set_status_call, update_call
from iii_kit.clients.state import StateClient, listed
from iii_kit.errors import BusError, CodedError, EpochEnded
from iii_testing.embedded import embedded
from iii_testing.world import ManualWorld

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
ENTRY = Entry("demo", "Demo", "An entry of a test.", SCHEMA, {"n": 1})


class Scripted:
    """A caller whose answers are a function of the call; remembers every call."""

    def __init__(self, answer: Callable[[str, Any, int], Any]) -> None:
        self._answer = answer
        self.calls: list[tuple[str, Any]] = []
        self.opts: list[Opts] = []

    async def call(self, fn: str, data: Any, *, opts: Opts = Opts()) -> Any:
        self.calls.append((fn, data))
        self.opts.append(opts)
        answer = self._answer(fn, data, len(self.calls))
        if isinstance(answer, Exception):
            raise answer
        return answer


def scripted(answer: Callable[[str, Any, int], Any]) -> tuple[Scripted, Caller]:
    caller = Scripted(answer)
    return caller, cast("Caller", caller)


@pytest.mark.requirement("kit.clients.state")
async def test_state_on_the_embedded_engine() -> None:
    async with embedded() as stack:
        bus = stack.attach("worker")
        state = StateClient(bus)
        assert await state.get("s", "k") is None
        await state.set("s", "k", {"key": "k", "n": 1})
        await bus.sequence([state.set_call("s", "l", {"key": "l"}), state.delete_call("s", "k")])
        assert await state.list("s") == [{"key": "l"}]
        assert await state.delete("s", "l") == {"key": "l"}


@pytest.mark.requirement("kit.clients.state")
@pytest.mark.parametrize(
    ("answer", "values"),
    [
        ([{"key": "a"}], [{"key": "a"}]),
        ({"values": [1, 2]}, [1, 2]),
        ({"items": []}, []),
        ({"a": {"key": "a"}, "b": {"key": "b"}}, [{"key": "a"}, {"key": "b"}]),
        ({}, []),
        (None, []),
        ("nonsense", []),
    ],
)
def test_every_form_of_a_listing_is_read(answer: Any, values: list[Any]) -> None:
    assert listed(answer) == values


@pytest.mark.requirement("kit.clients.namespace")
async def test_a_client_calls_in_the_namespace_it_was_given() -> None:
    calls, caller = scripted(lambda fn, data, n: None)
    await StateClient(caller, "own").get("s", "k")
    await StateClient(caller).get("s", "k")
    assert [opts.namespace for opts in calls.opts] == ["own", None]


@pytest.mark.requirement("kit.clients.namespace")
async def test_a_family_is_called_in_the_own_namespace_only_where_it_is_served_there() -> None:
    def answer(fn: str, data: Any, _: int) -> Any:
        return {"id": data["function_id"]} if data["namespace"] == "mine" else BusError("NOT_FOUND", "no such function")

    calls, caller = scripted(answer)
    engine = EngineClient(caller)
    assert await engine.provider_namespace("state::get", "mine") == "mine"
    assert await engine.provider_namespace("state::get", "other") == "default"
    assert await engine.provider_namespace("state::get", None) == "default"
    assert len(calls.calls) == 2


@pytest.mark.requirement("kit.clients.queue")
async def test_queues_are_defined_on_the_embedded_queue() -> None:
    async with embedded() as stack:
        queue = QueueClient(stack.attach("worker"), stack.world.clock)
        config = {"type": "fifo", "message_group_field": "session_id", "redeliver_on_engine_restart": True}
        await queue.define("turns", config)
        await queue.define("turns", config)


@pytest.mark.requirement("kit.clients.queue")
async def test_a_definition_is_tried_twenty_times_a_quarter_second_apart(world: ManualWorld) -> None:
    calls, caller = scripted(lambda fn, data, n: BusError("function_not_found", "Function queue::define not found"))
    defining = asyncio.ensure_future(QueueClient(caller, world.clock).define("q", {"type": "fifo"}))
    await world.advance(19 * 0.25 - 0.01)
    assert len(calls.calls) == 19
    await world.advance(0.02)
    with pytest.raises(QueueUndefined, match=r"queue::define q failed after 20 attempts: function_not_found"):
        await defining
    assert calls.opts[0].timeout_ms == 5000


@pytest.mark.requirement("kit.clients.queue")
async def test_an_old_queue_worker_gets_no_redelivery_flag_where_its_owner_can_do_without(world: ManualWorld) -> None:
    def old(fn: str, data: Any, _: int) -> Any:
        if "redeliver_on_engine_restart" in data["config"]:
            return BusError("invocation_failed", "unknown field `redeliver_on_engine_restart`, expected one of ...")
        return {"changed": True}

    calls, caller = scripted(old)
    client, config = QueueClient(caller, world.clock), {"type": "fifo", "redeliver_on_engine_restart": True}
    defining = asyncio.ensure_future(client.define("q", config, may_lose_redelivery=True))
    await world.advance(1)
    await defining
    assert calls.calls[-1][1] == {"queue": "q", "config": {"type": "fifo"}}
    assert "redeliver_on_engine_restart" in config
    with pytest.raises(QueueUndefined, match="requires a queue worker supporting redeliver_on_engine_restart"):
        await client.define("q", config)
    assert len(calls.calls) == 3


@pytest.mark.requirement("kit.clients.configuration")
async def test_seeding_keeps_what_an_operator_has_set() -> None:
    async with embedded() as stack:
        client = ConfigurationClient(stack.attach("worker"), stack.world.clock)
        assert await client.seed(ENTRY) == {"n": 1}
        await client.set("demo", {"n": 7})
        assert await client.seed(ENTRY) == {"n": 7}
        assert await client.get("demo") == {"n": 7}


@pytest.mark.requirement("kit.clients.configuration")
@pytest.mark.parametrize("stored", [None, {"n": 9}])
async def test_an_engine_without_ensure_is_seeded_by_register_get_and_set(world: ManualWorld, stored: Any) -> None:
    values = {"demo": stored}

    def answer(fn: str, data: Any, _: int) -> Any:
        match fn:
            case "configuration::ensure":
                return BusError("function_not_found", "Function configuration::ensure not found in namespace default.")
            case "configuration::register":
                assert "initial_value" not in data
                return {}
            case "configuration::get":
                return {"id": "demo", "value": values["demo"]}
            case _:
                values["demo"] = data["value"]
                return {}

    calls, caller = scripted(answer)
    assert await ConfigurationClient(caller, world.clock).seed(ENTRY) == (stored or {"n": 1})
    assert ("configuration::set" in [fn for fn, _ in calls.calls]) == (stored is None)


@pytest.mark.requirement("kit.clients.configuration")
async def test_a_configuration_call_is_tried_three_times_with_growing_pauses(world: ManualWorld) -> None:
    calls, caller = scripted(lambda fn, data, n: BusError("TIMEOUT", "invocation timed out after 5000ms"))
    seeding = asyncio.ensure_future(ConfigurationClient(caller, world.clock).seed(ENTRY))
    await world.advance(0.74)
    assert len(calls.calls) == 2
    await world.advance(0.02)
    with pytest.raises(BusError, match="TIMEOUT"):
        await seeding
    assert len(calls.calls) == 3


@pytest.mark.requirement("kit.clients.session")
async def test_pages_are_walked_to_the_end_and_a_repeated_cursor_stops_the_walk() -> None:
    def pages(fn: str, data: Any, _: int) -> Any:
        at = int(data.get("cursor", 0))
        assert data["limit"] == 500
        return {"messages": [{"entry_id": at}], **({"next_cursor": str(at + 1)} if at < 2 else {})}

    _, caller = scripted(pages)
    assert await SessionClient(caller).messages("s") == [{"entry_id": 0}, {"entry_id": 1}, {"entry_id": 2}]
    _, looping = scripted(lambda fn, data, n: {"sessions": [], "next_cursor": "again"})
    with pytest.raises(BusError, match="cursor 'again' twice"):
        await SessionClient(looping).list()


@pytest.mark.requirement("kit.clients.session")
async def test_an_ensured_session_must_be_the_one_asked_for() -> None:
    for answer in ({"created": True, "meta": {"session_id": "t"}}, {"meta": {"session_id": "s"}}):
        _, caller = scripted(lambda fn, data, n, answer=answer: answer)
        with pytest.raises(BusError, match="session/invalid_response"):
            await SessionClient(caller).ensure("s")
    good = {"created": False, "meta": {"session_id": "s"}, "session_id": "s"}
    _, caller = scripted(lambda fn, data, n: good)
    assert await SessionClient(caller).ensure("s", title="t") == good


@pytest.mark.requirement("kit.clients.session")
def test_writes_of_a_session_are_calls_without_absent_fields() -> None:
    message = {"role": "user", "content": [], "timestamp": 1}
    assert append_call("s", entry_id="e", message=message) == Call(
        "session::append", {"session_id": "s", "entry_id": "e", "message": message}
    )
    assert update_call("s", "e", [], usage=None, expected_revision=0).data == {
        "session_id": "s", "entry_id": "e", "content": [], "expected_revision": 0,
    }  # fmt: skip
    assert set_status_call("s", "done").data == {"session_id": "s", "status": "done"}
    assert set_status_call("s", "error", "why").data["reason"] == "why"


@pytest.mark.requirement("kit.clients.router")
async def test_a_chat_waits_longer_than_the_router_may_stream() -> None:
    calls, caller = scripted(lambda fn, data, n: {"ok": True})
    writer = ChannelRef("c", "k", "write")
    await RouterClient(caller).chat(writer, {"model": "m", "messages": []})
    assert calls.opts[0].timeout_ms >= 320_000
    assert calls.calls[0][1]["writer_ref"] == {"channel_id": "c", "access_key": "k", "direction": "write"}


@pytest.mark.requirement("kit.failures")
@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (BusError("function_not_found", "Function f not found"), Failure.ABSENT),
        (BusError("invocation_failed", "state: function_not_found for state::get"), Failure.ABSENT),
        (BusError("enqueue_error", "function_not_found: no provider"), Failure.QUEUE),
        (BusError("invocation_stopped", "Invocation stopped"), Failure.INTERRUPTED),
        (EpochEnded(), Failure.INTERRUPTED),
        (BusError("TIMEOUT", "invocation timed out after 5ms"), Failure.TIMED_OUT),
        (CodedError("session/not_found", "s"), Failure.REFUSED),
    ],
)
def test_failures_are_told_apart_by_substring(error: BusError, failure: Failure) -> None:
    assert classify(error) is failure
    assert is_transient(error) == (failure is not Failure.REFUSED)
