"""The provider on the embedded engine: what an enqueue promises and how jobs reach their function."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from iii_kit.bus import Call
from iii_kit.errors import BusError
from iii_kit.trace import Carrier, carrier, received
from iii_store import StorePoint
from iii_testing.waiting import settle, until
from iii_testing.world import ManualWorld, manual_world

sys.path.insert(0, str(Path(__file__).parent))

from provided import queues

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("queue.deliver.once_when_well")
async def test_a_job_reaches_its_function_with_its_data_and_leaves_no_row() -> None:
    async with queues() as q:
        got: list[Any] = []

        async def run(data: Any) -> None:
            got.append(data)

        q.serve(run)
        await q.define()
        for data in ({"g": "a", "n": [1, None, "é"]}, {"g": "b"}):
            assert await q.bus.enqueue("q", "t::fn", data)
        await until(lambda: not q.rows() and q.provider.dispatcher.idle)
        assert got == [{"g": "a", "n": [1, None, "é"]}, {"g": "b"}]


@pytest.mark.requirement("queue.enqueue.refusals")
@pytest.mark.parametrize(
    ("queue", "data", "text"),
    [
        ("none", {}, "queue 'none' is not defined; call queue::define before enqueueing"),
        ("", {}, "queue '' is not defined"),
        ("q", {"x": 1}, "FIFO queue 'q' requires field 'g' in data"),
        ("q", {"g": None}, "FIFO queue 'q' requires field 'g' in data"),
        ("q", [1], "FIFO queue 'q' requires field 'g' in data"),
    ],
)
async def test_an_enqueue_that_cannot_be_kept_is_refused(queue: str, data: Any, text: str) -> None:
    async with queues() as q:
        await q.define()
        with pytest.raises(BusError) as caught:
            await q.bus.enqueue(queue, "t::fn", data)
        assert caught.value.code == "enqueue_error" and text in caught.value.message
        assert q.rows() == []


async def test_the_queue_default_is_there_without_a_definition() -> None:
    async with queues() as q:
        done = asyncio.Event()

        async def run(_: Any) -> None:
            done.set()

        q.serve(run)
        await q.bus.enqueue("default", "t::fn", 5)
        await asyncio.wait_for(done.wait(), 10)


@pytest.mark.requirement("queue.enqueue.receipt_once")
async def test_a_receipt_that_is_handed_over_again_is_one_job() -> None:
    async with queues() as q:
        await q.define()
        request = {"queue": "q", "function_id": "t::none", "data": {"g": 1}, "messageReceiptId": "r1"}
        for _ in range(2):
            assert await q.bus.call("engine::queue::enqueue", request) == {"messageReceiptId": "r1"}
        assert q.rows("id, grp") == [("r1", "1")]


@pytest.mark.requirement("queue.define.idempotent")
async def test_defining_alike_changes_nothing_and_definitions_outlive_a_crash() -> None:
    async with queues() as q:
        assert await q.define(concurrency=3)
        assert not await q.define(concurrency=3)
        assert await q.define(concurrency=4)
        await q.crash_and_restart()
        assert not await q.define(concurrency=4, max_retries=3)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"type": "fifo"}, "a fifo queue requires `message_group_field`"),
        ({"concurrency": 0}, "config.concurrency"),
        ({"typ": "fifo"}, "unknown field `config.typ`"),
        ({"type": "lifo"}, "config.type"),
        (None, "config"),
    ],
)
async def test_an_unreadable_definition_names_its_field(config: Any, text: str) -> None:
    async with queues() as q:
        with pytest.raises(BusError) as caught:
            await q.bus.call("queue::define", {"queue": "q", "config": config})
        assert caught.value.code == "deserialization_error" and text in caught.value.message
        assert "Failed to deserialize input for queue::define" in caught.value.message


@pytest.mark.requirement("queue.retry.order_kept")
async def test_a_failed_job_holds_back_its_group_and_no_other(world: ManualWorld) -> None:
    async with queues(world) as q:
        tried: list[tuple[str, int]] = []
        done: list[tuple[str, int]] = []

        async def run(data: Any) -> None:
            place = (data["g"], data["n"])
            tried.append(place)
            if place == ("a", 1) and tried.count(place) < 3:
                raise BusError("broken", "not yet")
            done.append(place)

        q.serve(run)
        await q.define(backoff_ms=1000, max_retries=3)
        for place in (("a", 1), ("a", 2), ("b", 1), ("a", 3), ("b", 2)):
            await q.bus.enqueue("q", "t::fn", {"g": place[0], "n": place[1]})
        await until(lambda: len(done) == 2 and q.rows("error")[0][0] is not None)
        assert done == [("b", 1), ("b", 2)] and tried.count(("a", 1)) == 1
        await until(lambda: world.manual_clock.sleepers > 0)
        await world.advance(1.0)
        await until(lambda: tried.count(("a", 1)) == 2 and q.rows("attempt")[0] == (2,))
        await world.advance(1.9)
        assert tried.count(("a", 1)) == 2
        await world.advance(0.1)
        await until(lambda: q.rows() == [])
        assert done[2:] == [("a", 1), ("a", 2), ("a", 3)]


@pytest.mark.requirement("queue.dead.group_goes_on")
async def test_after_the_last_attempt_a_job_is_a_dead_letter_and_its_group_goes_on() -> None:
    async with queues() as q:
        done: list[int] = []

        async def run(data: Any) -> None:
            if data["n"] == 1:
                raise ValueError("never")
            done.append(data["n"])

        q.serve(run)
        await q.define(max_retries=2, backoff_ms=1)
        for n in (1, 2):
            await q.bus.enqueue("q", "t::fn", {"g": "a", "n": n})
        await until(lambda: done == [2] and q.provider.dispatcher.idle)
        assert q.rows() == [("dead", 2, 0)]
        assert q.rows("error")[0][0] == "invocation_failed: never"


@pytest.mark.requirement("queue.standard.no_order")
async def test_in_a_standard_queue_a_failed_job_holds_back_none() -> None:
    async with queues(manual_world()) as q:
        done: list[int] = []

        async def run(data: Any) -> None:
            if data == 1:
                raise ValueError("not yet")
            done.append(data)

        q.serve(run)
        await q.define(type="standard", message_group_field=None)
        for n in (1, 2, 3):
            await q.bus.enqueue("q", "t::fn", n)
        await until(lambda: sorted(done) == [2, 3])


@pytest.mark.requirement("queue.define.applies_at_once")
async def test_no_more_groups_than_the_concurrency_run_and_a_new_one_holds_at_once() -> None:
    async with queues() as q:
        running: set[str] = set()
        release = asyncio.Event()

        async def run(data: Any) -> None:
            running.add(data["g"])
            await release.wait()

        q.serve(run)
        await q.define(concurrency=2)
        for group in "abcd":
            await q.bus.enqueue("q", "t::fn", {"g": group})
        await until(lambda: len(running) == 2)
        await settle()
        assert running == {"a", "b"}
        await q.define(concurrency=3)
        await until(lambda: len(running) == 3)
        release.set()
        await until(lambda: q.rows() == [])
        assert running == {"a", "b", "c", "d"}


@pytest.mark.requirement("queue.timeout.failed_attempt")
async def test_a_delivery_that_takes_too_long_is_a_failed_attempt() -> None:
    async with queues() as q:
        never, calls = asyncio.Event(), 0

        async def run(_: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == 1:
                await never.wait()

        q.serve(run)
        await q.define(timeout_ms=30, backoff_ms=1)
        await q.bus.enqueue("q", "t::fn", {"g": "a"})
        await until(lambda: calls == 2 and q.rows() == [])


@pytest.mark.requirement("queue.absent.no_attempt")
async def test_a_job_waits_for_its_function_and_is_tried_again(world: ManualWorld) -> None:
    async with queues(world) as q:
        got: list[Any] = []

        async def run(data: Any) -> None:
            got.append(data["n"])

        await q.define(max_retries=1)
        for n in (1, 2):
            await q.bus.enqueue("q", "t::fn", {"g": "a", "n": n})
        for _ in range(6):
            await until(lambda: world.manual_clock.sleepers > 0)
            await world.advance(10)
        assert q.rows("attempt, error") == [(0, None), (0, None)] and got == []
        q.serve(run)
        await q.define(max_retries=1)
        await until(lambda: got == [1, 2])


@pytest.mark.requirement("queue.enqueue.joins_sequence")
async def test_an_enqueue_shares_the_commit_of_its_sequence() -> None:
    async with queues() as q:
        await q.define()
        await until(lambda: q.provider.dispatcher.idle)
        before = q.stack.store.commits
        place = {"scope": "s", "key": "k"}
        await q.bus.sequence(
            [
                Call("state::set", {**place, "value": 1}),
                Call("t::none", {"g": "a"}, kind="enqueue", queue="q"),
                Call("state::set", {**place, "value": 2}),
            ]
        )
        assert q.stack.store.commits == before + 1
        assert len(q.rows()) == 1


@pytest.mark.requirement("queue.enqueue.durable_first")
async def test_no_job_is_delivered_whose_commit_did_not_happen(world: ManualWorld) -> None:
    async with queues(world, inline=True) as q:
        got: list[Any] = []

        async def run(data: Any) -> None:
            got.append(data)

        q.serve(run)
        await q.define()
        world.points.crash_at(1, StorePoint.GROUP_WRITTEN)
        enqueueing = asyncio.ensure_future(q.bus.enqueue("q", "t::fn", {"g": "a"}))
        await settle()
        await q.crash_and_restart()
        await settle()
        assert got == [] and q.rows() == []
        enqueueing.cancel()
        await asyncio.wait({enqueueing})


@pytest.mark.requirement("queue.deliver.trace")
async def test_the_trace_of_the_enqueue_goes_on_below_the_tags_of_the_queue() -> None:
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with queues() as q:
        seen: list[Carrier] = []

        async def run(_: Any) -> None:
            seen.append(carrier())

        q.serve(run)
        await q.define()
        with received(Carrier(traceparent, "tenant=a%20b,iii.tag.kind=turn,iii.tag.hidden=1")):
            await q.bus.enqueue("q", "t::fn", {"g": "a"})
        await q.bus.enqueue("q", "t::fn", {"g": "b"})
        await until(lambda: len(seen) == 2)
        traced = next(c for c in seen if c.traceparent)
        assert traced.traceparent == traceparent
        entries = dict(entry.split("=", 1) for entry in (traced.baggage or "").split(","))
        assert entries["tenant"] in ("a%20b", "a+b") and entries["iii.tag.kind"] == "queue.process"
        assert "iii.tag.hidden" not in entries and "q" in entries["iii.tag.display_name"]
        assert seen[1].traceparent is None or seen[0].traceparent is None


@pytest.mark.requirement("queue.drain.stays_durable")
async def test_after_draining_jobs_are_accepted_and_wait_and_running_ones_may_end() -> None:
    async with queues() as q:
        started, release = asyncio.Event(), asyncio.Event()
        got: list[int] = []

        async def run(data: Any) -> None:
            got.append(data["n"])
            started.set()
            await release.wait()

        q.serve(run)
        await q.define()
        await q.bus.enqueue("q", "t::fn", {"g": "a", "n": 1})
        await started.wait()
        draining = asyncio.ensure_future(q.provider.drain())
        await settle()
        await q.bus.enqueue("q", "t::fn", {"g": "a", "n": 2})
        release.set()
        await draining
        assert q.rows() == [("ready", 0, 0)] and got == [1]


async def test_what_does_not_end_within_the_grace_waits_at_its_old_place() -> None:
    async with queues() as q:
        started, never = asyncio.Event(), asyncio.Event()

        async def run(_: Any) -> None:
            started.set()
            await never.wait()

        q.serve(run)
        await q.define()
        await q.bus.enqueue("q", "t::fn", {"g": "a"})
        await started.wait()
        await q.provider.drain(grace_s=0.05)
        assert q.rows() == [("ready", 0, 0)]
