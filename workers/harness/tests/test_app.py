"""The installed worker on the whole stack: order of its start, its functions, hot reload, drain, going on by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from iii_contracts import harness as contract
from iii_kit.errors import BusError
from iii_kit.world import real_world
from iii_testing.loop_bench import LoopBench, bench, reply, spec, steps, text
from iii_testing.waiting import until, until_async

pytestmark = pytest.mark.anyio


async def cron_bindings(made: LoopBench) -> list[str]:
    found = await made.call(
        "engine::registered-triggers::list", trigger_type="cron", function_id="harness::sweep-pending"
    )
    rows = [await made.call("engine::registered-triggers::info", id=row["id"]) for row in found["registered_triggers"]]
    return [row["config"]["expression"] for row in rows]


@pytest.mark.requirement("entry.app.serves")
async def test_every_declared_function_and_trigger_type_is_registered(tmp_path):
    async with bench(real_world(), tmp_path, steps(reply(text("hi")))) as made:
        listed = (await made.call("engine::functions::list", include_internal=True))["functions"]
        served = {row["function_id"]: row for row in listed if row["function_id"].startswith("harness::")}
        assert set(served) == {declared.id for declared in contract.FUNCTIONS}
        types = (await made.call("engine::triggers::list", include_internal=True))["triggers"]
        assert {declared.id for declared in contract.TRIGGERS} <= {row["id"] for row in types}


@pytest.mark.requirement("entry.app.ready")
async def test_ready_is_told_to_bindings_of_before_and_of_later(tmp_path):
    made = LoopBench(real_world(), tmp_path, steps(reply(text("hi"))))
    heard: list[Any] = []

    async def hear(data: Any, _: Any) -> None:
        heard.append(data)

    await made.boot()
    made.client.serve(spec("client::ready"), hear)
    made.client.bind("harness::ready", "client::ready", {})
    await until(lambda: heard)
    assert heard[0]["status"] == "ready"
    await made.close()


@pytest.mark.requirement("entry.app.reload")
async def test_a_changed_configuration_binds_the_timer_anew_and_defines_the_queue_again(tmp_path):
    async with bench(real_world(), tmp_path, steps(reply(text("hi")))) as made:
        assert await cron_bindings(made) == ["0 * * * * *"]
        value = (await made.call("configuration::get", id="harness"))["value"]
        changed = {**value, "sweep_expression": "30 * * * * *", "turn_concurrency": 3}
        await made.call("configuration::set", id="harness", value=changed)
        parts = made.harness._parts
        await until(lambda: parts.settings.value.turn_concurrency == 3)
        await until(lambda: made.harness._timer.expression == "30 * * * * *")
        assert await cron_bindings(made) == ["30 * * * * *"]
        again = await made.call("queue::define", queue="harness-turn", config=definition(3))
        assert again == {"queue": "harness-turn", "changed": False}


@pytest.mark.requirement("entry.app.timer-kept")
async def test_a_timer_expression_that_cron_refuses_leaves_the_old_timer(tmp_path, monkeypatch):
    monkeypatch.setattr("iii_harness.sweep_timer.LOOKS_S", (0.0, 0.01))
    async with bench(real_world(), tmp_path, steps(reply(text("hi")))) as made:
        value = (await made.call("configuration::get", id="harness"))["value"]
        changed = {**value, "sweep_expression": "99 * * * * *", "turn_concurrency": 3}
        await made.call("configuration::set", id="harness", value=changed)
        again = {"queue": "harness-turn", "changed": False}

        async def followed() -> bool:
            return await made.call("queue::define", queue="harness-turn", config=definition(3)) == again

        await until_async(followed)
        assert made.harness._timer.expression == "0 * * * * *"
        assert await cron_bindings(made) == ["0 * * * * *"]


@pytest.mark.requirement("prompt.catalog.reread")
async def test_a_registry_that_could_not_be_read_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr("iii_harness.app.RETRY_S", 0.01)
    made = LoopBench(real_world(), tmp_path, steps(reply(text("hi"))))
    failed: list[Any] = []

    class Unread:
        def __init__(self, bus: Any) -> None:
            self._bus = bus

        def __getattr__(self, name: str) -> Any:
            return getattr(self._bus, name)

        async def call(self, fn: str, data: Any, **options: Any) -> Any:
            if fn == "engine::functions::list" and len(failed) < 4:
                failed.append(data)
                raise BusError("TIMEOUT", "the engine is slow", fn)
            return await self._bus.call(fn, data, **options)

    made.wrap = Unread
    await made.boot()
    catalog = made.harness._parts.catalog
    await until(lambda: catalog.complete)
    assert len(failed) == 4
    assert catalog.snapshot.functions["session::append"].parameters is not None
    await made.close()


def definition(concurrency: int) -> dict[str, Any]:
    return {
        "type": "fifo",
        "message_group_field": "session_id",
        "concurrency": concurrency,
        "max_retries": 3,
        "backoff_ms": 1000,
        "poll_interval_ms": 100,
        "redeliver_on_engine_restart": True,
    }


@pytest.mark.requirement("entry.app.drain")
async def test_a_drain_lets_the_running_step_end_and_the_next_start_goes_on(tmp_path):
    gate = asyncio.Event()

    async def model(request: dict[str, Any]) -> Any:
        await gate.wait()
        return reply(text("done"))

    made = LoopBench(real_world(), tmp_path, model)
    await made.boot()
    session_id = (await made.send())["session_id"]
    await until(lambda: made.requests)
    await made.send("and this", session_id=session_id)
    draining = asyncio.ensure_future(made.harness.drain())
    await asyncio.sleep(0)
    with pytest.raises(BusError) as error:
        await made.send("too late", session_id=session_id)
    assert error.value.code == "function_not_found"
    gate.set()
    await draining
    record = await made.record(session_id)
    assert (record.status, record.step) == ("running", 1)
    await made.queue.drain()
    await made.engine.close()
    made.store.close()
    await made.boot()
    await made.over(session_id)
    said = [i["message"]["content"][0]["text"] for i in await made.path_of(session_id) if "message" in i]
    assert said == ["hello", "done", "and this", "done"]
    await made.close()


@pytest.mark.requirement("entry.app.grace")
async def test_a_drain_does_not_wait_for_ever_and_what_was_cut_off_goes_on(tmp_path):
    async def never(_: dict[str, Any]) -> Any:
        await asyncio.Event().wait()

    made = LoopBench(real_world(), tmp_path, never)
    await made.boot()
    session_id = (await made.send())["session_id"]
    await until(lambda: made.requests)
    await asyncio.wait_for(made.harness.drain(grace_s=0.05), 5)
    made.crash()
    made.model = steps(reply(text("done")))
    await made.boot()
    assert (await made.over(session_id)).result == "done"
    await made.close()


@pytest.mark.requirement("entry.app.fails")
async def test_a_start_that_no_waiting_mends_says_why(tmp_path):
    made = LoopBench(real_world(), tmp_path, steps(reply(text("hi"))))
    await made.boot()
    value = (await made.call("configuration::get", id="harness"))["value"]
    await made.call("configuration::register", id="harness", name="Harness", description="any", schema={})
    await made.call("configuration::set", id="harness", value={**value, "turn_concurrency": 0})
    await made.close()
    with pytest.raises(BusError) as error:
        await made.boot()
    assert "SCHEMA_INVALID" in str(error.value)
    assert "/turn_concurrency" in str(error.value)
    await made.close()


@pytest.mark.requirement("entry.app.orphan")
async def test_a_turn_whose_queue_entry_was_lost_goes_on_at_the_next_start(tmp_path):
    made = LoopBench(real_world(), tmp_path, steps(reply(text("done"))))
    await made.boot()
    await made.harness.drain()
    row = {
        "turn_id": "t_lost",
        "session_id": "s_lost",
        "status": "running",
        "created_at": 1,
        "updated_at": real_world().clock.now_ms(),
        "options": {"model": "m"},
    }
    user = {"role": "user", "content": [text("hello?")], "timestamp": 1}
    await made.call("session::ensure", session_id="s_lost")
    await made.call("session::append", session_id="s_lost", message=user)
    await made.call("state::set", scope="harness_turn", key="s_lost", value=row)
    made.crash()
    await made.boot()
    assert (await made.over("s_lost")).result == "done"
    await made.close()
