"""`eval::compare-sessions` on a bus whose other workers are written by the test (eval 11)."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from jsonschema import Draft7Validator

from iii_contracts.eval.comparison import COMPARE_SESSIONS
from iii_contracts.spec import FunctionSpec
from iii_eval.app import install
from iii_eval.errors import failure_text
from iii_eval.figures import FIGURES
from iii_kit.bus import Invocation
from iii_kit.errors import BusError, CodedError
from iii_testing.embedded import embedded
from iii_testing.waiting import until

pytestmark = pytest.mark.anyio

GET, STATUS, METRICS = "session::get", "harness::status", "harness::metrics"

UNKNOWN = {"absolute": None, "percent": None}

Answer = Callable[[dict[str, Any]], Any]


def meta(session_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "title": f"Session {session_id}",
        "description": "",
        "status": "done",
        "kind": "user",
        "created_at": 1,
        "updated_at": 2,
        "message_count": 4,
        **fields,
    }


def report(session_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "turn_id": f"t_{session_id}",
        "status": "completed",
        "step": 3,
        "turn_count": 2,
        "children": [],
        "expects_wake": False,
        "max_turns": 10,
        "pending_function_calls": [],
        "result": {"text": "done"},
        **fields,
    }


def usage(session_id: str, tokens: int | None = 10, **fields: Any) -> dict[str, Any]:
    counts = {"turns": 2, "function_calls": 1, "function_call_errors": 0}
    counters = {
        "input_tokens": tokens,
        "output_tokens": 5,
        "cache_read_tokens": None,
        "cache_write_tokens": None,
        "reasoning_tokens": None,
        "cost_usd": 0.25,
    }
    return {
        "root_session_id": session_id,
        "complete": True,
        "totals": {"sessions": 1, **counts, **counters},
        "by_session": [{"session_id": session_id, "depth": 0, **counts, **counters}],
        **fields,
    }


class Others:
    """The session store and the harness, as a comparison meets them."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {
            GET: lambda asked: {"meta": meta(asked["session_id"])},
            STATUS: lambda asked: report(asked["session_id"]),
            METRICS: lambda asked: usage(asked["root_session_id"]),
        }
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.gate: asyncio.Event | None = None
        self.call: Callable[..., Awaitable[Any]]

    def of(self, function_id: str, **by_session: Any) -> None:
        """Answer this for the sessions named, the usual for others; an exception is raised."""
        usual = self.answers[function_id]

        def answer(asked: dict[str, Any]) -> Any:
            session_id = asked.get("session_id", asked.get("root_session_id"))
            if session_id not in by_session:
                return usual(asked)
            if isinstance(by_session[session_id], Exception):
                raise by_session[session_id]
            return by_session[session_id]

        self.answers[function_id] = answer

    async def compare(self, *session_ids: str, baseline: str | None = None) -> dict[str, Any]:
        request = {"session_ids": list(session_ids), "baseline_session_id": baseline or session_ids[0]}
        answer = await self.call(COMPARE_SESSIONS.id, request)
        Draft7Validator(COMPARE_SESSIONS.response_schema or {}).validate(answer)
        return answer

    async def refused(self, *session_ids: str, baseline: str | None = None) -> str:
        with pytest.raises(BusError) as error:
            await self.compare(*session_ids, baseline=baseline)
        assert error.value.code == "invocation_failed"
        return error.value.message

    def handler(self, function_id: str) -> Callable[[Any, Invocation], Awaitable[Any]]:
        async def serve(data: Any, _: Invocation) -> Any:
            self.asked.append((function_id, {k: v for k, v in data.items() if k != "_caller_worker_id"}))
            if self.gate is not None:
                await self.gate.wait()
            answer = self.answers[function_id](data)
            return await answer if asyncio.iscoroutine(answer) else answer

        return serve


@asynccontextmanager
async def others(*absent: str) -> AsyncIterator[Others]:
    async with embedded() as stack:
        made = Others()
        played = stack.attach("others")
        for function_id in (GET, STATUS, METRICS):
            if function_id not in absent:
                spec = FunctionSpec(function_id, "Played by a test.", None, None, "test/invalid")
                played.serve(spec, made.handler(function_id))
        worker = install(stack.attach("eval"), stack.world)
        await worker.ready()
        made.call = stack.attach("caller").call
        yield made
        await worker.drain()
        with pytest.raises(BusError, match="function_not_found"):
            await made.call(COMPARE_SESSIONS.id, {})


@pytest.mark.requirement("eval.compare.answer")
async def test_sessions_come_in_the_order_asked_for_with_everything_known() -> None:
    async with others() as made:
        made.of(GET, b={"meta": meta("b", metadata={"a": None}, forked_from="x", draft="d", status_reason=None)})
        made.of(METRICS, b=usage("b", tokens=20))
        answer = await made.compare("c", "b", "a", baseline="b")
    assert answer["schema_version"] == "1"
    assert answer["baseline_session_id"] == "b"
    assert [item["session"]["session_id"] for item in answer["sessions"]] == ["c", "b", "a"]
    item = answer["sessions"][1]
    assert item["session"] == {
        "session_id": "b",
        "title": "Session b",
        "description": "",
        "status": "done",
        "metadata": {"a": None},
        "forked_from": "x",
        "draft": "d",
        "created_at": 1,
        "updated_at": 2,
        "message_count": 4,
    }
    assert item["lifecycle"] == {
        "session_status": "done",
        "turn_id": "t_b",
        "turn_status": "completed",
        "terminal": True,
        "expects_wake": False,
        "complete": True,
        "partial": False,
    }
    assert list(item["summary"]) == list(FIGURES)
    assert item["summary"]["reasoning_tokens"] is None
    assert "errors" not in item
    for other in answer["sessions"]:
        assert list(other["deltas"]) == list(FIGURES)
    assert answer["sessions"][0]["deltas"]["input_tokens"] == {"absolute": -10.0, "percent": -50.0}
    assert item["deltas"]["input_tokens"] == {"absolute": 0.0, "percent": 0.0}
    assert item["deltas"]["function_call_errors"] == {"absolute": 0.0, "percent": None}
    assert item["deltas"]["reasoning_tokens"] == {"absolute": None, "percent": None}


@pytest.mark.requirement("eval.compare.reduced")
async def test_metrics_are_handed_on_as_declared_and_without_nulls() -> None:
    newer = usage("b", later=1)
    newer["totals"]["later"] = 1
    newer["by_session"][0] |= {"later": 1, "parent_session_id": None}
    context = {
        "session_id": "b",
        "turn_id": "t",
        "step": 1,
        "model": "m",
        "provider": None,
        "usable": 10,
        "effective_max_output_tokens": 1,
        "total": 1,
        "free": 9,
        "categories": {
            "system_prompt": 1,
            "tools": 1,
            "messages": {"user": 1, "assistant": 0, "function_result": 0, "custom": 0, "later": 1},
            "overhead": 0,
            "skills": 3,
        },
        "compacted": False,
        "prefix_divergences": [],
        "usage": {"input": 1, "later": 2},
        "timestamp": 1,
    }
    newer["by_session"][0]["context"] = copy.deepcopy(context)
    async with others() as made:
        made.of(METRICS, b=newer)
        found = (await made.compare("a", "b"))["sessions"][1]["metrics"]
    del context["provider"], context["prefix_divergences"], context["categories"]["skills"]
    del context["categories"]["messages"]["later"], context["usage"]["later"]
    counts = {
        "turns": 2,
        "function_calls": 1,
        "function_call_errors": 0,
        "input_tokens": 10,
        "output_tokens": 5,
        "cost_usd": 0.25,
    }
    assert found == {
        "root_session_id": "b",
        "complete": True,
        "totals": {"sessions": 1, **counts},
        "by_session": [{"session_id": "b", "depth": 0, **counts, "context": context}],
    }


@pytest.mark.requirement("eval.compare.requests")
async def test_each_session_is_read_three_times_and_all_reads_are_made_at_once() -> None:
    async with others() as made:
        made.gate = asyncio.Event()
        comparing = asyncio.ensure_future(made.compare("a", "b", "c", "d", "e"))
        await until(lambda: len(made.asked) == 15)
        made.gate.set()
        await comparing
    assert (STATUS, {"session_id": "a", "verbose": True}) in made.asked
    assert (METRICS, {"root_session_id": "e"}) in made.asked
    assert (GET, {"session_id": "c"}) in made.asked
    assert Counter(function for function, _ in made.asked) == {GET: 5, STATUS: 5, METRICS: 5}


BAD = [
    (("a",), "a", ("session_ids", "2", "5", "got 1")),
    (("a", "b", "c", "d", "e", "f"), "a", ("session_ids", "2", "5", "got 6")),
    ((" ",), "a", ("2", "5")),
    (("a", " \t"), "a", ("session_ids", "empty")),
    (("", ""), "a", ("session_ids", "empty")),
    (("a", "b", "a"), "x", ("session_ids", "unique", "a")),
    (("a", "b"), "x", ("baseline_session_id", "session_ids", "x")),
    (("a", "A"), " a", ("baseline_session_id",)),
]


@pytest.mark.requirement("eval.compare.rules")
@pytest.mark.parametrize(("ids", "baseline", "said"), BAD)
async def test_the_first_rule_that_is_broken_is_named_and_nothing_is_read(
    ids: tuple[str, ...], baseline: str, said: tuple[str, ...]
) -> None:
    async with others() as made:
        message = await made.refused(*ids, baseline=baseline)
        assert message.startswith("invalid request: ")
        for word in said:
            assert word in message
        assert made.asked == []


@pytest.mark.requirement("eval.compare.shape")
async def test_a_request_of_another_shape_is_refused_with_its_field_and_nothing_is_read() -> None:
    async with others() as made:
        for request, said in (
            ({"session_ids": ["a", "b"]}, "invalid request: missing field `baseline_session_id`"),
            ({"session_ids": ["a", 2], "baseline_session_id": "a"}, "invalid request: `session_ids.1`: invalid type"),
            ({"session_ids": ["a", "b"], "baseline_session_id": "a", "x": 1}, "invalid request: unknown field `x`"),
        ):
            with pytest.raises(BusError) as error:
                await made.call(COMPARE_SESSIONS.id, request)
            assert (error.value.code, error.value.message[: len(said)]) == ("invocation_failed", said)
        assert made.asked == []


@pytest.mark.requirement("eval.compare.fatal")
async def test_a_session_that_cannot_be_read_ends_the_comparison() -> None:
    async with others() as made:
        made.of(GET, gone=None, odd={"session_id": "odd"}, bad={"meta": meta("bad", status="weird")})
        made.of(GET, refused=CodedError("session/invalid_request", "too long"))
        assert await made.refused("a", "gone") == "session not found: gone"
        odd = await made.refused("odd", "a")
        assert odd.startswith("serialization error: session::get: ")
        assert "meta" in odd
        assert "status" in await made.refused("a", "bad")
        refused = await made.refused("a", "refused")
        assert refused == "dependency error: session::get: session/invalid_request: too long"


@pytest.mark.requirement("eval.compare.fatal")
async def test_a_lost_session_does_not_wait_for_what_else_is_read() -> None:
    async with others() as made:
        made.of(GET, gone=None)
        made.answers[METRICS] = lambda _: asyncio.Event().wait()
        async with asyncio.timeout(10):
            assert await made.refused("a", "gone") == "session not found: gone"


@pytest.mark.requirement("eval.compare.absent")
async def test_an_absent_worker_is_named() -> None:
    async with others(GET) as made:
        message = await made.refused("a", "b")
        assert message.startswith("dependency error: session::get: function_not_found")
    async with others(STATUS, METRICS) as made:
        answer = await made.compare("a", "b")
        for item in answer["sessions"]:
            assert [text.split(": ")[:2] for text in item["errors"]] == [
                ["harness::status", "function_not_found"],
                ["harness::metrics", "function_not_found"],
            ]
            assert item["lifecycle"] == {"session_status": "done", "partial": True}
            assert not {"metrics", "summary"} & item.keys()
            assert item["deltas"] == dict.fromkeys(FIGURES, UNKNOWN)


@pytest.mark.requirement("eval.compare.roots")
@pytest.mark.parametrize("parent", ["r", None, "", 3])
async def test_a_session_below_another_one_is_refused_whatever_its_parent_is(parent: Any) -> None:
    async with others() as made:
        made.of(GET, child={"meta": meta("child", metadata={"parent_session_id": parent})})
        message = await made.refused("a", "child")
        assert message.startswith("invalid request: ")
        for word in ("child", "metadata.parent_session_id", "root"):
            assert word in message
        made.of(
            GET, fork={"meta": meta("fork", forked_from="a")}, odd={"meta": meta("odd", metadata=["parent_session_id"])}
        )
        assert len((await made.compare("a", "fork", "odd"))["sessions"]) == 3


@pytest.mark.requirement("eval.compare.local")
@pytest.mark.parametrize("baseline", ["a", "b"])
async def test_a_failing_status_or_metrics_stays_with_its_session(baseline: str) -> None:
    async with others() as made:
        made.of(STATUS, b=BusError("oops", "no luck"))
        broken = usage("b")
        del broken["totals"]["turns"]
        made.of(METRICS, b=broken)
        answer = await made.compare("a", "b", baseline=baseline)
    good, bad = answer["sessions"]
    assert "errors" not in good
    assert bad["errors"] == [
        "harness::status: oops: no luck",
        "harness::metrics: its answer cannot be read: missing field `turns` in `totals`",
    ]
    assert bad["lifecycle"] == {"session_status": "done", "partial": True}
    assert all(value == UNKNOWN for value in bad["deltas"].values())
    assert all(value == UNKNOWN for value in good["deltas"].values()) == (baseline == "b")
    assert good["summary"]["total_tokens"] == 15


@pytest.mark.requirement("eval.compare.lifecycle")
async def test_how_far_a_session_has_come() -> None:
    async with others() as made:
        made.of(
            STATUS, fresh=None, waits=report("waits", expects_wake=True), old={"status": "running", "turn_id": None}
        )
        made.of(STATUS, failed=report("failed", status="failed", result_error="broke"))
        made.of(METRICS, fresh=usage("fresh", complete=False))
        answer = await made.compare("fresh", "waits", "old", "failed")
    fresh, waits, old, failed = (item["lifecycle"] for item in answer["sessions"])
    assert fresh == {"session_status": "done", "complete": False, "partial": True}
    assert (waits["turn_status"], waits["terminal"], waits["expects_wake"]) == ("completed", False, True)
    assert old == {
        "session_status": "done",
        "turn_status": "running",
        "terminal": False,
        "expects_wake": False,
        "complete": True,
        "partial": False,
    }
    assert (failed["terminal"], failed["result_error"]) == (True, "broke")


@pytest.mark.requirement("eval.compare.timeout")
def test_a_read_without_an_answer_says_how_long_it_was_waited_for() -> None:
    assert failure_text(BusError("TIMEOUT", "late"), 30_000) == "no answer within 30 seconds (TIMEOUT: late)"
