"""Steps on the real engine, queue and session store, in commit and in stepwise mode."""

from __future__ import annotations

import pytest

from iii_testing.loop_bench import bench, call, reply, steps, text

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["commit", "stepwise"])
def stepwise(request):
    return request.param


@pytest.mark.requirement("loop.step.answers")
async def test_a_turn_without_calls_ends_completed_with_the_text(world, tmp_path, stepwise):
    async with bench(world, tmp_path, lambda _: reply(text("hi there")), stepwise=stepwise) as b:
        sent = await b.send("hello")
        record = await b.over(sent["session_id"])
        assert (record.status, record.result, record.turn_count) == ("completed", "hi there", 1)
        path = await b.path_of(sent["session_id"])
        assert [item.get("message", {}).get("role", "custom") for item in path] == ["user", "custom", "assistant"]
        assert path[-1]["entry_id"] == f"e_{sent['turn_id']}_0_assistant"
        assert path[-1]["message"]["usage"] == {"input": 10, "output": 5}
        assert b.completed[0]["result"] == "hi there"
        meta = await b.call("session::get", session_id=sent["session_id"])
        assert meta["meta"]["status"] == "done"


@pytest.mark.requirement("loop.call.result")
async def test_a_call_runs_once_and_its_result_goes_back_to_the_model(world, tmp_path, stepwise):
    model = steps(reply(call("c1", "demo::add", {"a": 1, "b": 2})), reply(text("3")))
    async with bench(world, tmp_path, model, stepwise=stepwise, add=lambda d: {"sum": d["a"] + d["b"]}) as b:
        sent = await b.send("add")
        record = await b.over(sent["session_id"])
        assert (record.status, record.result, record.step) == ("completed", "3", 1)
        assert dict(b.started) == {'demo::add {"a": 1, "b": 2}': 1}
        result = b.requests[1]["messages"][-1]
        assert (result["role"], result["function_call_id"], result["function_id"]) == (
            "function_result",
            "c1",
            "demo::add",
        )
        assert result["content"] == [text('{"sum":3}')]
        assert (result["details"], result["is_error"]) == ({"sum": 3}, False)
