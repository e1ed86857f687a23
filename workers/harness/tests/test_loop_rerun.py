"""What a step that runs again, or goes on after a broken stream, leaves in the transcript."""

from __future__ import annotations

import asyncio

import pytest

from iii_testing.invariants import check_results
from iii_testing.loop_bench import bench, call, message, reply, text
from iii_testing.waiting import settle

pytestmark = pytest.mark.anyio


def said(path):
    return [
        "".join(block.get("text", "") for block in item["message"]["content"]) for item in path if "message" in item
    ]


@pytest.mark.requirement("loop.drain.rerun")
@pytest.mark.parametrize("stepwise", [False, True], ids=["commit", "stepwise"])
async def test_a_message_parked_before_a_death_stands_behind_the_reply_that_has_not_read_it(world, tmp_path, stepwise):
    streaming = asyncio.Event()
    async with bench(world, tmp_path, lambda _: [streaming], stepwise=stepwise) as b:
        session_id = (await b.send("first"))["session_id"]
        await streaming.wait()
        assert (await b.send("second", session_id=session_id))["queued"]
        b.crash()
        await settle()
        b.model = lambda request: reply(text(f"read {len(request['messages'])}"))
        await b.boot()
        assert (await b.over(session_id)).result == "read 3"
        assert said(await b.path_of(session_id)) == ["first", "read 1", "second", "read 3"]
        windows = [r["messages"] for r in b.requests]
        assert [m["role"] for m in windows[-1]] == ["user", "assistant", "user"]
        assert windows[-1][:1] == windows[-2] == windows[-3], "nothing that was sent is rewritten"


@pytest.mark.requirement("loop.broken.calls")
async def test_the_calls_of_a_broken_reply_were_never_made_and_are_not_kept_for_the_next(world, tmp_path):
    whole = call("c1", "demo::do", {"n": 1})
    broken = [
        {"type": "start", "partial": message(stop_reason="end")},
        {"type": "functioncall_end", "partial": message(text("I call"), whole, stop_reason="end")},
    ]
    ran = []

    def model(request):
        replies = sum(m["role"] == "assistant" for m in request["messages"])
        return [broken, reply(whole), reply(text("end"))][replies]

    async with bench(world, tmp_path, model, do=ran.append) as b:
        session_id = (await b.send())["session_id"]
        record = await b.over(session_id)
        assert (record.status, record.transient_resumes, ran) == ("completed", 1, [{"n": 1}])
        path = await b.path_of(session_id)
        check_results(path, {})
        assert [m["role"] for m in b.requests[1]["messages"]] == ["user", "assistant", "user"]
        assert b.requests[1]["messages"][1]["content"] == [text("I call")]
