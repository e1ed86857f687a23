"""Calls: values, isolation, callers, errors, time-outs, metadata (engine spec 2.3, 5, 7, 21.5)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field

from iii_contracts.model import Closed
from iii_kit.bus import Invocation, Opts
from iii_kit.errors import BusError, CodedError, PayloadTooLarge, Unencodable
from iii_testing.buses import Wire, function, unique
from iii_testing.waiting import until, until_async

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


class Request(Closed):
    """A strict request."""

    name: str
    count: int = Field(default=1, ge=1, le=5)


async def echo(data: Any, _: Invocation) -> Any:
    return data


@pytest.mark.requirement("kit.bus.values")
async def test_json_values_arrive_and_return_as_they_are(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    spec = await wire.serve(bus, echo)
    sent: list[Any] = []

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(VALUES)
    def collect(value: Any) -> None:
        sent.append(value)

    collect()
    awkward = [0, -0.0, 2**64 - 1, -(2**63), 1e-300, "\u0000", "𝄞", "\u2028", {}, [], {"": {"": None}}, {"a.b": [None]}]
    for value in [*sent, *awkward]:
        assert await caller.call(spec.id, {"value": value}) == {"value": value}


@pytest.mark.requirement("kit.bus.isolation")
async def test_neither_arguments_nor_results_are_shared(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    kept: list[Any] = []

    async def keep(data: Any, _: Invocation) -> Any:
        kept.append(data)
        data["list"].append("callee")
        result = {"list": data["list"]}
        asyncio.get_running_loop().call_soon(result["list"].append, "late")
        return result

    spec = await wire.serve(bus, keep)
    argument = {"list": ["caller"]}
    calling = asyncio.ensure_future(caller.call(spec.id, argument))
    await asyncio.sleep(0)
    argument["list"].append("changed")
    result = await calling
    assert result == {"list": ["caller", "callee"]}
    result["list"].clear()
    assert argument == {"list": ["caller", "changed"]}
    assert kept[0]["list"] == ["caller", "callee", "late"]


@pytest.mark.requirement("kit.bus.caller")
async def test_the_caller_is_known_and_its_key_is_no_part_of_the_request(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    seen: list[Invocation] = []

    async def run(request: Any, invocation: Invocation) -> Any:
        seen.append(invocation)
        return request if isinstance(request, dict) else request.model_dump()

    anything = await wire.serve(bus, run)
    strict = await wire.serve(bus, run, function(request=Request))
    assert await caller.call(anything.id, {"a": 1, "_caller_worker_id": "forged"}) == {"a": 1}
    assert await caller.call(strict.id, {"name": "n"}) == {"name": "n", "count": 1}
    assert [invocation.caller for invocation in seen] == [caller.worker_id] * 2
    assert [invocation.function_id for invocation in seen] == [anything.id, strict.id]


@pytest.mark.requirement("kit.bus.errors")
async def test_errors_keep_their_code_and_text(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()

    async def refuse(data: Any, _: Invocation) -> Any:
        match data["how"]:
            case "coded":
                raise CodedError("demo/not_found", "no note n1: really")
            case "unexpected":
                raise KeyError("oops")
            case _:
                raise ValueError("error: with a colon")

    spec = await wire.serve(bus, refuse)
    with pytest.raises(BusError) as coded:
        await caller.call(spec.id, {"how": "coded"})
    assert (coded.value.code, coded.value.message) == ("demo/not_found", "demo/not_found: no note n1: really")
    assert coded.value.matches("demo/not_found")
    assert coded.value.function_id == spec.id
    for how, text in (("unexpected", "'oops'"), ("other", "error: with a colon")):
        with pytest.raises(BusError) as failed:
            await caller.call(spec.id, {"how": how})
        assert (failed.value.code, failed.value.message) == ("invocation_failed", text)


@pytest.mark.requirement("kit.bus.invalid")
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({}, "missing field `name`"),
        ({"name": 5}, "`name`: invalid type: integer `5`, expected a string"),
        ({"name": "n", "extra": 1}, "unknown field `extra`"),
        ({"name": "n", "count": 9}, "`count`: Input should be less than or equal to 5, got integer `9`"),
    ],
)
async def test_a_request_that_does_not_fit_is_refused_with_field_and_limit(
    wire: Wire, data: dict[str, Any], problem: str
) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    spec = await wire.serve(bus, echo, function(request=Request))
    with pytest.raises(BusError) as refused:
        await caller.call(spec.id, data)
    assert (refused.value.code, refused.value.message) == ("demo/invalid_request", f"demo/invalid_request: {problem}")


@pytest.mark.requirement("kit.bus.missing")
async def test_a_function_that_nobody_serves_is_not_found_until_it_is_served_and_after_it_is_taken_back(
    wire: Wire,
) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    spec = function()
    with pytest.raises(BusError) as missing:
        await caller.call(spec.id, {})
    assert missing.value.code == "function_not_found"
    handle = bus.serve(spec, echo)
    await wire.callable(caller, spec.id)
    assert await caller.call(spec.id, {"a": 1}) == {"a": 1}
    handle.close()
    handle.close()

    async def gone() -> bool:
        try:
            await caller.call(spec.id, {})
        except BusError as error:
            return error.code == "function_not_found"
        return False

    await until_async(gone)


@pytest.mark.requirement("kit.bus.timeout")
async def test_a_call_that_takes_too_long_times_out_and_runs_on(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    gate, ended = asyncio.Event(), asyncio.Event()

    async def slow(_: Any, __: Invocation) -> Any:
        await gate.wait()
        ended.set()
        return {}

    spec = await wire.serve(bus, slow)
    with pytest.raises(BusError) as late:
        await caller.call(spec.id, {}, opts=Opts(timeout_ms=50))
    assert (late.value.code, late.value.message) == ("TIMEOUT", "invocation timed out after 50ms")
    gate.set()
    await asyncio.wait_for(ended.wait(), 10)


@pytest.mark.requirement("kit.bus.cancel")
async def test_cancelling_a_caller_forgets_the_answer_alone(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    started, gate, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(_: Any, __: Invocation) -> Any:
        started.set()
        await gate.wait()
        ended.set()
        return {}

    spec = await wire.serve(bus, slow)
    calling = asyncio.ensure_future(caller.call(spec.id, {}))
    await asyncio.wait_for(started.wait(), 10)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    gate.set()
    await asyncio.wait_for(ended.wait(), 10)
    assert (await caller.call(spec.id, {})) == {}


@pytest.mark.requirement("kit.bus.metadata")
async def test_metadata_travels_beside_the_data(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()

    async def tell(_: Any, invocation: Invocation) -> Any:
        return {"metadata": invocation.metadata}

    spec = await wire.serve(bus, tell)
    for metadata in ({"a": [1, None]}, "text", 0, None):
        assert await caller.call(spec.id, {}, opts=Opts(metadata=metadata)) == {"metadata": metadata}


@pytest.mark.requirement("kit.bus.void")
async def test_a_void_call_returns_at_once_and_its_failure_reaches_nobody(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    heard: list[Any] = []
    gate = asyncio.Event()

    async def note(data: Any, invocation: Invocation) -> Any:
        await gate.wait()
        heard.append((data, invocation.metadata))
        raise CodedError("demo/failed", "nobody hears this")

    spec = await wire.serve(bus, note)
    assert await caller.void(spec.id, {"n": 1}, opts=Opts(metadata={"m": 1})) is None
    assert await caller.void(unique(), {"n": 2}) is None
    gate.set()
    await until(lambda: heard)
    assert heard == [({"n": 1}, {"m": 1})]


@pytest.mark.requirement("kit.bus.namespace")
async def test_a_blank_namespace_is_refused_and_another_one_is_searched(wire: Wire) -> None:
    caller = await wire.attach()
    with pytest.raises(BusError) as blank:
        await caller.call(unique(), {}, opts=Opts(namespace=" "))
    assert blank.value.code == "INVALID_NAMESPACE"
    with pytest.raises(BusError, match="not found in namespace elsewhere"):
        await caller.call(unique(), {}, opts=Opts(namespace="elsewhere"))


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.requirement("kit.bus.unencodable")
@pytest.mark.parametrize(
    ("value", "path"),
    [
        (float("nan"), "$.value"),
        ({"list": [1, float("inf")]}, "$.value.list[1]"),
        ("lone \ud800", "$.value"),
        ({"key \udfff": 1}, "$.value"),
        ({1: "one"}, "$.value"),
        ({"when": object()}, "$.value.when"),
        (b"bytes", "$.value"),
    ],
)
async def test_what_json_cannot_carry_is_refused_by_place_before_it_is_sent(wire: Wire, value: Any, path: str) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    ran: list[Any] = []

    async def run(data: Any, _: Invocation) -> Any:
        ran.append(data)
        return {}

    spec = await wire.serve(bus, run)
    for send in (
        lambda: caller.call(spec.id, {"value": value}),
        lambda: caller.void(spec.id, {"value": value}),
        lambda: caller.enqueue("q", spec.id, {"value": value}),
    ):
        with pytest.raises(Unencodable) as refused:
            await send()
        assert refused.value.path == path
    with pytest.raises(Unencodable):
        await caller.call(spec.id, {}, opts=Opts(metadata={"value": value}))
    assert ran == []


@pytest.mark.requirement("kit.bus.unencodable")
async def test_depth_and_size_have_limits(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    spec = await wire.serve(bus, echo)
    deepest = {"value": nested(125)}
    assert await caller.call(spec.id, deepest) == deepest
    with pytest.raises(Unencodable, match="nested deeper than 126 levels"):
        await caller.call(spec.id, {"value": nested(126)})
    with pytest.raises(PayloadTooLarge):
        await caller.call(spec.id, {"value": "x" * (64 * 1024 * 1024)})


@pytest.mark.requirement("kit.bus.unencodable")
async def test_a_call_without_data_is_refused(wire: Wire) -> None:
    caller = await wire.attach()
    with pytest.raises(Unencodable):
        await caller.call(unique(), None)


@pytest.mark.requirement("kit.bus.unencodable")
async def test_a_result_that_json_cannot_carry_is_an_error_that_names_its_place(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()

    async def run(_: Any, __: Invocation) -> Any:
        return {"ratio": float("nan")}

    spec = await wire.serve(bus, run)
    with pytest.raises(BusError) as refused:
        await caller.call(spec.id, {})
    assert "$.ratio: nan is not a JSON number" in refused.value.message


@pytest.mark.requirement("kit.bus.models")
async def test_a_model_is_answered_without_the_fields_nobody_set(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()

    async def run(_: Any, __: Invocation) -> Any:
        return Request(name="n")

    spec = await wire.serve(bus, run)
    assert await caller.call(spec.id, {}) == {"name": "n"}


@pytest.mark.requirement("kit.bus.parallel")
async def test_calls_run_side_by_side(wire: Wire) -> None:
    bus, caller = await wire.attach(), await wire.attach()
    together = asyncio.Barrier(20)

    async def run(_: Any, __: Invocation) -> Any:
        await together.wait()
        return {}

    spec = await wire.serve(bus, run)
    async with asyncio.timeout(10):
        await asyncio.gather(*(caller.call(spec.id, {}) for _ in range(20)))


@pytest.mark.requirement("kit.bus.self")
async def test_a_worker_calls_its_own_function_as_any_other(wire: Wire) -> None:
    bus = await wire.attach()

    async def who(_: Any, invocation: Invocation) -> Any:
        return {"caller": invocation.caller}

    spec = await wire.serve(bus, who)
    assert await bus.call(spec.id, {}) == {"caller": bus.worker_id}
