"""What travels with every call of a step (harness-loop 17)."""

from __future__ import annotations

import pytest
from opentelemetry import baggage, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from iii_testing.loop_bench import bench, call, reply, steps, text

pytestmark = pytest.mark.anyio

TRACED = NonRecordingSpan(SpanContext(7, 9, is_remote=False, trace_flags=TraceFlags(1)))


@pytest.mark.requirement("loop.baggage")
@pytest.mark.parametrize(("title", "named"), [(" A longer walk ", "A longer walk"), ("", None), (None, None)])
async def test_calls_of_a_step_tell_session_turn_and_message(world, tmp_path, title, named):
    seen: list[dict] = []
    model = steps(reply(call("c", "demo::do", {})), reply(call("d", "demo::do", {})), reply(text("end")))
    async with bench(world, tmp_path, model, do=lambda _: seen.append(dict(baggage.get_all()))) as b:
        asked: list[str] = []
        good = b.bus.call

        async def counted(fn, data, **options):
            asked.append(fn)
            return await good(fn, data, **options)

        b.bus.call = counted
        with trace.use_span(TRACED):
            sent = await b.send("walk  with me", session={} if title is None else {"title": title})
        await b.over(sent["session_id"])
        expected = {
            "iii.session.id": sent["session_id"],
            "iii.message.id": sent["turn_id"],
            "iii.tag.kind": "harness.turn",
            "iii.tag.message": "walk with me",
        }
        assert len(seen) == 2
        for told in seen:
            assert expected.items() <= told.items()
            assert told.get("iii.session.name") == named
        assert asked.count("session::get") == 1


@pytest.mark.requirement("loop.baggage")
async def test_where_nobody_traces_no_title_is_read(world, tmp_path):
    async with bench(world, tmp_path, lambda _: reply(text("x"))) as b:
        asked: list[str] = []
        good = b.bus.call

        async def counted(fn, data, **options):
            asked.append(fn)
            return await good(fn, data, **options)

        b.bus.call = counted
        await b.over((await b.send(session={"title": "named"}))["session_id"])
        assert "session::get" not in asked
