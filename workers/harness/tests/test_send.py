"""`harness::send` on the real engine and session store: what it accepts, what it refuses, what it costs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from iii_contracts.spec import FunctionSpec
from iii_kit.errors import BusError
from iii_testing.entry_bench import EntryBench, opened
from iii_testing.waiting import until
from iii_testing.world import ManualWorld

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["commit", "stepwise"])
async def bench(request, world, tmp_path):
    async with opened(world, tmp_path, stepwise=request.param) as bench:
        yield bench


async def refused(bench: EntryBench, data: dict[str, Any], code: str = "harness/invalid_request") -> str:
    """The text of a refusal, after checking that nothing was stored."""
    rows = [await bench.rows(scope) for scope in ("harness_turn", "harness_queue", "harness_idem")]
    jobs, sessions = await bench.jobs(), await bench.call("session::list")
    with pytest.raises(BusError) as error:
        await bench.client.call("harness::send", data)
    assert error.value.matches(code), error.value
    assert rows == [await bench.rows(scope) for scope in ("harness_turn", "harness_queue", "harness_idem")]
    assert (jobs, sessions) == (await bench.jobs(), await bench.call("session::list"))
    return error.value.message


@pytest.mark.requirement("entry.send.starts")
async def test_a_send_creates_session_message_record_and_first_step(bench):
    answer = await bench.send("  hello   there, this is a long first message  ", session={"title": "T"})
    session_id = answer["session_id"]
    assert answer == {"session_id": session_id, "turn_id": answer["turn_id"], "accepted": True}
    assert (await bench.call("session::get", session_id=session_id))["meta"]["title"] == "T"
    assert await bench.texts(session_id) == ["  hello   there, this is a long first message  "]
    record = await bench.record(session_id)
    assert (record.status, record.step, record.message_preview) == ("running", 0, "hello there, this is a long fi")
    assert await bench.jobs() == [
        {
            "session_id": session_id,
            "turn_id": answer["turn_id"],
            "step": 0,
            "depth": 0,
            "message_preview": "hello there, this is a long fi",
        }
    ]
    items = (await bench.call("session::messages", session_id=session_id))["messages"]
    assert items[0]["origin"] == {"turn_id": answer["turn_id"]}


@pytest.mark.requirement("entry.send.commits")
async def test_a_send_costs_at_most_two_commits_and_three_for_a_new_session(world, tmp_path):
    async with opened(world, tmp_path) as bench:
        before = bench.store.commits
        session_id = (await bench.send())["session_id"]
        assert bench.store.commits - before <= 3
        await bench.end(await bench.record(session_id), "completed")
        for fields in ({}, {"idempotency_key": "k"}):
            before = bench.store.commits
            await bench.send(session_id=session_id, **fields)
            assert bench.store.commits - before <= 2


@pytest.mark.requirement("entry.send.unserved")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("agent", "coder"),
        ("skills", []),
        ("max_total_tokens", 5),
        ("max_cost_usd", 0),
        ("output", {"type": "json"}),
    ],
)
async def test_an_option_that_is_not_built_is_refused_by_name(bench, name, value):
    text = await refused(bench, {"message": "x", "model": "m", "options": {name: value}})
    assert f"options.{name}" in text and "not available in this version" in text


@pytest.mark.requirement("entry.send.shape")
@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "missing field `message`"),
        ({"message": 3}, "`message`"),
        ({"message": " "}, "`message`: is empty"),
        ({"message": "x", "session_id": 5}, "`session_id`"),
        ({"message": "x", "session_id": ""}, "`session_id`"),
        ({"message": "x", "idempotency_key": ""}, "`idempotency_key`"),
        ({"message": "x"}, "`model` is required: a new session"),
        ({"message": "x", "session_id": "s_unknown"}, "`model` is required: session `s_unknown`"),
        ({"message": "x", "model": "m", "options": {"max_turns": -1}}, "`options.max_turns`"),
        ({"message": "x", "model": "m", "options": {"max_turns": "7"}}, "`options.max_turns`"),
        ({"message": "x", "model": "m", "options": {"thinking_level": "huge"}}, "`options.thinking_level`"),
        ({"message": "x", "model": "m", "options": {"functions": {"allow": "*"}}}, "`options.functions.allow`"),
        ({"message": "x", "model": "m", "options": {"reasoning": "lowest", "thinking_level": "low"}}, "combined"),
        ({"message": "x", "model": "m", "session": {"metadata": 7}}, "`session.metadata`"),
        ({"message": "x", "model": "m", "session": {"kind": "robot"}}, "kind"),
        ({"message": "x", "model": "m", "session_id": "s1", "session": {"kind": "robot"}}, "kind"),
        ({"message": {"role": "user", "content": "x"}, "model": "m"}, "`content`"),
        ({"message": {"role": "user", "content": []}, "model": "m"}, "`message.content`"),
        ({"message": {"role": "user", "content": [{"type": "text"}]}, "model": "m"}, "missing field `text`"),
        ({"message": {"role": "custom", "content": []}, "model": "m"}, "missing field `custom_type`"),
        ({"message": "x", "model": "m", "session": {"metadata": {"read_only": True}}}, "read-only"),
    ],
)
async def test_a_bad_request_is_refused_naming_the_field_and_stores_nothing(bench, data, says):
    assert says in await refused(bench, data)


@pytest.mark.requirement("entry.send.role")
@pytest.mark.parametrize("role", ["assistant", "function_result", None, 4, ["user"]])
async def test_only_user_and_custom_messages_are_accepted(bench, role):
    message = {"role": role, "content": [{"type": "text", "text": "x"}], "timestamp": 1}
    assert "`message.role`" in await refused(bench, {"message": message, "model": "m"}, "harness/invalid_message_role")


@pytest.mark.requirement("entry.send.read-only")
async def test_a_read_only_session_accepts_no_message(bench):
    await bench.call("session::ensure", session_id="s1", metadata={"read_only": True})
    text = await refused(bench, {"message": "x", "model": "m", "session_id": "s1"})
    assert "session `s1` is read-only and cannot accept messages" in text


@pytest.mark.requirement("entry.send.external")
async def test_the_first_message_of_an_external_session_needs_a_model_and_a_root(bench):
    await bench.call("session::ensure", session_id="s1", metadata={"external_source": "x"})
    assert "`model`" in await refused(bench, {"message": "x", "session_id": "s1"})
    assert "fs_scope.root" in await refused(bench, {"message": "x", "session_id": "s1", "model": "m"})
    await bench.send(session_id="s1", options={"metadata": {"fs_scope": {"root": "/w"}}})
    await bench.end(await bench.record("s1"), "completed")
    await bench.client.call("harness::send", {"message": "more", "session_id": "s1"})


@pytest.mark.requirement("entry.send.parks")
async def test_a_message_for_a_running_turn_is_parked_and_told(bench):
    told = []
    bench.client.serve(hears("t::queued"), lambda request, _: record_event(told, request))
    bench.client.bind("harness::message-queued", "t::queued", {})
    first = await bench.send()
    session_id = first["session_id"]
    second = await bench.send("more", session_id=session_id)
    assert second == {**first, "merged": True, "queued": True}
    rows = await bench.rows("harness_queue")
    assert [(row["entry_id"], row["message"]["content"][0]["text"]) for row in rows] == [(f"e_{rows[0]['id']}", "more")]
    assert rows[0]["id"].startswith("q_") and await bench.texts(session_id) == ["hello"]
    await until(lambda: told)
    assert told == [
        {
            "session_id": session_id,
            "entry_id": rows[0]["entry_id"],
            "queued_at": rows[0]["queued_at"],
            "timestamp": told[0]["timestamp"],
        }
    ]
    assert len(await bench.jobs()) == 1


@pytest.mark.requirement("entry.send.merges")
async def test_a_message_for_a_turn_that_waits_for_calls_is_appended(bench):
    first = await bench.send()
    session_id = first["session_id"]
    record = await bench.record(session_id)
    await bench.turns.save(replace(record, status="awaiting_functions"))
    second = await bench.send("more", session_id=session_id, options={"metadata": {"fs_scope": {"root": "/new"}}})
    assert second == {**first, "merged": True}
    assert await bench.texts(session_id) == ["hello", "more"]
    assert await bench.rows("harness_queue") == []
    assert (await bench.record(session_id)).options.metadata["fs_scope"]["root"] == "/new"
    assert len(await bench.jobs()) == 1


@pytest.mark.requirement("entry.send.next-turn")
@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
async def test_after_a_turn_has_ended_a_send_starts_the_next_one(bench, status):
    first = await bench.send()
    session_id = first["session_id"]
    await bench.end(await bench.record(session_id), status)
    second = await bench.client.call("harness::send", {"message": "again", "session_id": session_id})
    assert second["turn_id"] != first["turn_id"] and "merged" not in second
    record = await bench.record(session_id)
    assert (record.turn_id, record.status, record.step, record.options.model) == (second["turn_id"], "running", 0, "m")
    assert [job["turn_id"] for job in await bench.jobs()] == [first["turn_id"], second["turn_id"]]


@pytest.mark.requirement("entry.send.unscheduled")
async def test_a_turn_that_cannot_be_enqueued_ends_failed_and_the_send_fails(bench, world):
    bench.enqueue_failures = 99
    sending = asyncio.ensure_future(bench.send(session_id="s1"))
    await advanced_until(world, sending)
    with pytest.raises(BusError) as error:
        await sending
    assert error.value.matches("harness/dependency")
    [(record, cause)] = bench.unscheduled
    assert record.session_id == "s1" and "harness-turn" in cause.message
    assert (await bench.record("s1")).status == "failed" and await bench.jobs() == []


@pytest.mark.requirement("entry.send.enqueue-retried")
async def test_an_enqueue_that_fails_for_a_moment_is_tried_again(bench, world):
    bench.enqueue_failures = 4
    sending = asyncio.ensure_future(bench.send(session_id="s1"))
    await advanced_until(world, sending)
    await sending
    assert len(await bench.jobs()) == 1 and bench.unscheduled == []
    assert await bench.texts("s1") == ["hello"]


async def record_event(told: list[Any], request: Any) -> None:
    told.append(request)


async def advanced_until(world: ManualWorld, task: asyncio.Future[Any]) -> None:
    """Let time pass until `task` is done."""
    while not task.done():
        await asyncio.sleep(0.001)
        await world.advance(0.1)


def hears(function_id: str) -> FunctionSpec:
    return FunctionSpec(function_id, "Hears an event.", None, None, "bad")
