"""The trigger types of the harness: filters, payloads, `harness::ready` for those who come late."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iii_contracts.harness import events
from iii_contracts.spec import FunctionSpec
from iii_harness.record import Options, Parent, TurnRecord
from iii_kit.bindings import Bindings
from iii_kit.bus import Binding
from iii_kit.errors import BusError
from iii_testing.entry_bench import opened
from iii_testing.waiting import settle, until

pytestmark = pytest.mark.anyio

RECORD = TurnRecord(
    turn_id="t1",
    session_id="s1",
    status="completed",
    options=Options(model="m"),
    created_at=1,
    updated_at=2,
    message_preview="hi",
)


@pytest.fixture
async def bench(world, tmp_path):
    async with opened(world, tmp_path) as bench:
        yield bench


def hearing(bench, trigger, config=None):
    heard = []
    name = f"t::{id(heard)}"

    async def hear(request, invocation):
        heard.append(request)

    bench.client.serve(FunctionSpec(name, "Hears.", None, None, "bad"), hear)
    bench.client.bind(trigger, name, config)
    return heard


@pytest.mark.requirement("entry.events.turn")
async def test_a_turn_is_told_with_its_lineage_and_without_what_has_no_value(bench, world):
    started, completed = hearing(bench, "harness::turn-started"), hearing(bench, "harness::turn-completed")
    await settle()
    await bench.events.turn_started(RECORD)
    child = replace(RECORD, parent=Parent("s0", "t0", "fc"), result={"n": 1}, depth=1)
    for _ in range(2):
        await bench.events.turn_completed(child, None)
        world.manual_clock.skip(5)
    await until(lambda: started and len(completed) == 2)
    assert started == [
        {"session_id": "s1", "turn_id": "t1", "timestamp": started[0]["timestamp"], "depth": 0, "message_preview": "hi"}
    ]
    assert (
        completed[0]
        == completed[1]
        == {
            "session_id": "s1",
            "turn_id": "t1",
            "status": "completed",
            "terminal": True,
            "timestamp": 2,
            "result": {"n": 1},
            "parent": {"session_id": "s0", "turn_id": "t0", "function_call_id": "fc"},
        }
    )


@pytest.mark.requirement("entry.events.filter")
@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, ["root", "child", "shown"]),
        ({"session_id": "child"}, ["child"]),
        ({"parent_session_id": "root"}, ["child", "shown"]),
        ({"session_id": "shown", "parent_session_id": "root"}, ["shown"]),
        ({"session_id": "root", "parent_session_id": "root"}, []),
    ],
)
async def test_both_filters_must_match(bench, config, told):
    heard = hearing(bench, "harness::turn-completed", config)
    last = hearing(bench, "harness::turn-completed", {"session_id": "last"})
    await settle()
    await bench.events.turn_completed(replace(RECORD, session_id="root"), None)
    await bench.events.turn_completed(replace(RECORD, session_id="child", parent=Parent("root", "t", "f")), None)
    await bench.events.turn_completed(replace(RECORD, session_id="shown", display_parent_session_id="root"), None)
    await bench.events.turn_completed(replace(RECORD, session_id="last"), None)
    await until(lambda: last)
    assert [event["session_id"] for event in heard if event["session_id"] != "last"] == told


@pytest.mark.requirement("entry.events.ready")
async def test_a_binding_made_after_ready_is_told_at_once_and_one_before_it_waits(bench, world):
    early = hearing(bench, "harness::ready")
    await settle()
    assert early == []
    world.manual_clock.skip(1)
    await bench.events.ready()
    await until(lambda: early)
    world.manual_clock.skip(1)
    late = hearing(bench, "harness::ready", {})
    await until(lambda: late)
    assert early == late == [{"status": "ready", "timestamp": early[0]["timestamp"]}]
    bench.events.closed()
    closed = hearing(bench, "harness::ready", {})
    await settle()
    assert closed == []


@pytest.mark.requirement("entry.events.closed-config")
@pytest.mark.parametrize("spec", events.TRIGGERS, ids=lambda spec: spec.id)
async def test_an_unknown_key_refuses_a_binding(spec):
    with pytest.raises(BusError) as error:
        await Bindings(spec).bound(Binding("b", "f", {"unknown": 1}))
    assert error.value.code == "trigger_registration_failed" and "`unknown`" in error.value.message
