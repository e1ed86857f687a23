"""The store on the in-process bus: events after the commit, sequences, configuration (siblings 3.8, 3.11)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from iii_contracts.spec import FunctionSpec
from iii_kit.bus import Call
from iii_kit.errors import BusError, PartialSequence
from iii_siblings import sessions
from iii_testing.embedded import embedded
from iii_testing.session_desk import assistant, result, text, user
from iii_testing.waiting import settle, until

pytestmark = pytest.mark.anyio


class Listener:
    """A worker that binds a function to event types and keeps what it hears."""

    def __init__(self, bus: Any) -> None:
        self.bus = bus
        self.heard: list[tuple[str, Any, Any]] = []

    async def listen(self, kind: str, config: Any = None, metadata: Any = None) -> None:
        function_id = f"listener::f{len(self.heard)}-{id(config)}-{kind.rpartition('::')[2]}"

        async def hear(payload: Any, invocation: Any) -> None:
            payload.pop("_caller_worker_id", None)
            self.heard.append((kind, payload, invocation.metadata))

        self.bus.serve(FunctionSpec(function_id, "hears", None, None, "invalid"), hear)
        self.bus.bind(kind, function_id, config, metadata=metadata)
        await settle()

    def of(self, kind: str) -> list[Any]:
        return [payload for each, payload, _ in self.heard if each == kind]


@asynccontextmanager
async def store() -> AsyncIterator[tuple[Any, Listener]]:
    async with embedded(families=[sessions.FAMILY]) as stack:
        worker = sessions.install(stack.attach("session-manager"), stack.world)
        await worker.ready()
        yield stack.attach("client"), Listener(stack.attach("listener"))
        await worker.drain()


@pytest.mark.requirement("sessions.events")
async def test_every_event_reaches_its_bindings_with_their_metadata():
    async with store() as (bus, listener):
        kinds = ("created", "message-added", "message-updated", "status-changed", "meta-updated", "deleted")
        for kind in kinds:
            await listener.listen(f"session::{kind}", {}, {"mine": kind})
        await bus.call("session::ensure", {"session_id": "s", "title": "T"})
        await bus.call("session::append", {"session_id": "s", "message": assistant(), "entry_id": "e"})
        await bus.call("session::update-message", {"session_id": "s", "entry_id": "e", "content": [text("x")]})
        await bus.call("session::set-status", {"session_id": "s", "status": "done", "reason": "stopped"})
        await bus.call("session::set-meta", {"session_id": "s", "title": "U"})
        await bus.call("session::delete", {"session_id": "s"})
        await until(lambda: len(listener.heard) == len(kinds))
        assert {kind: metadata for kind, _, metadata in listener.heard} == {
            f"session::{kind}": {"mine": kind} for kind in kinds
        }
        (added,) = listener.of("session::message-added")
        at = added.pop("timestamp")
        assert added == {"session_id": "s", "entry_id": "e", "parent_id": None, "message": assistant()}
        (updated,) = listener.of("session::message-updated")
        assert (updated["message"], updated["revision"]) == (assistant(text("x")), 1)
        (changed,) = listener.of("session::status-changed")
        assert (changed["previous_status"], changed["status_reason"]) == ("idle", "stopped")
        assert changed["timestamp"] >= at


@pytest.mark.requirement("sessions.events.filters")
async def test_filters_are_combined_and_roles_exclude_bookkeeping():
    async with store() as (bus, listener):
        await listener.listen("session::message-added", {"session_id": "a", "roles": ["user"]})
        await listener.listen(
            "session::message-added", {"metadata": {"team": 1}, "roles": ["custom", "function_result"]}
        )
        await listener.listen("session::created", {"metadata": {"team": 1}})
        await listener.listen("session::deleted", {"session_id": "b", "metadata": {"team": 1}})
        for session_id, team in (("a", 1), ("b", 1), ("c", 2)):
            await bus.call("session::ensure", {"session_id": session_id, "metadata": {"team": team}})
            for entry in (
                {"message": user("u")},
                {"message": result("r")},
                {"custom": {"custom_type": "x", "data": 1}},
            ):
                await bus.call("session::append", {"session_id": session_id, **entry})
        for session_id in "abc":
            await bus.call("session::delete", {"session_id": session_id})
        await until(lambda: len(listener.of("session::deleted")) == 1)
        seen = sorted((each["session_id"], each["message"]["role"]) for each in listener.of("session::message-added"))
        assert seen == [("a", "function_result"), ("a", "user"), ("b", "function_result")]
        assert sorted(each["session_id"] for each in listener.of("session::created")) == ["a", "b"]
        assert listener.of("session::deleted")[0]["session_id"] == "b"


@pytest.mark.requirement("sessions.events.config")
async def test_an_unknown_filter_key_is_refused():
    async with store() as (bus, _):
        with pytest.raises(BusError, match="entry_id"):
            await bus.call(
                "engine::register_trigger",
                {"trigger_type": "session::message-added", "function_id": "x::y", "config": {"entry_id": "e"}},
            )


@pytest.mark.requirement("sessions.sequence")
async def test_a_step_is_one_commit_and_a_failure_keeps_what_came_before():
    async with store() as (bus, listener):
        await listener.listen("session::message-added", {})
        await bus.call("session::ensure", {"session_id": "s"})
        step = [
            Call("session::append", {"session_id": "s", "message": assistant(), "entry_id": "a"}),
            Call("session::update-message", {"session_id": "s", "entry_id": "a", "content": [text("x")]}),
            Call("session::append", {"session_id": "s", "message": result("c"), "entry_id": "r"}),
            Call("session::set-status", {"session_id": "s", "status": "working"}),
        ]
        answers = await bus.sequence(step)
        assert [answers[1], answers[2]["parent_id"], answers[3]["status"]] == [
            {"updated": True, "revision": 1},
            "a",
            "working",
        ]
        with pytest.raises(PartialSequence) as cut:
            await bus.sequence(
                [
                    Call("session::append", {"session_id": "s", "message": user("kept"), "entry_id": "k"}),
                    Call("session::append", {"session_id": "none", "message": user("lost")}),
                    Call("session::append", {"session_id": "s", "message": user("never"), "entry_id": "n"}),
                ]
            )
        assert cut.value.matches("session/not_found")
        assert [answer["entry_id"] for answer in cut.value.done] == ["k"]
        page = await bus.call("session::messages", {"session_id": "s", "after_entry_id": "r"})
        assert [item["entry_id"] for item in page["messages"]] == ["k"]
        await until(lambda: len(listener.heard) == 3)
        assert [event["entry_id"] for event in listener.of("session::message-added")] == ["a", "r", "k"]


@pytest.mark.requirement("sessions.settings")
async def test_limits_follow_the_configuration_and_a_bad_value_keeps_them():
    async with store() as (bus, _):
        await bus.call("session::ensure", {"session_id": "s"})
        for index in range(4):
            await bus.call("session::append", {"session_id": "s", "message": user(str(index))})

        async def page() -> int:
            return len((await bus.call("session::messages", {"session_id": "s"}))["messages"])

        assert await page() == 4
        stored = (await bus.call("configuration::get", {"id": "session-manager"}))["value"]
        await bus.call("configuration::set", {"id": "session-manager", "value": {**stored, "default_list_limit": 3}})
        while await page() != 3:  # the event of the change is on its way
            await settle(1)
        with pytest.raises(BusError):
            await bus.call("configuration::set", {"id": "session-manager", "value": {"default_list_limit": "many"}})
        assert await page() == 3
