"""The registry's snapshot: seeded, refreshed by events, kept when reading fails."""

import asyncio

import anyio
import pytest

from iii_contracts.harness.upkeep import FunctionsChange
from iii_harness.catalog import BATCH, INFO, LIST, Catalog
from iii_kit.bus import Invocation
from iii_kit.errors import BusError
from iii_testing.answers import Answers

pytestmark = pytest.mark.anyio
CALL = Invocation("harness::on-functions-change")


class Registry(Answers):
    """An engine that lists and describes `functions`: id to fields."""

    def __init__(self, **functions) -> None:
        super().__init__()
        self.functions = {name.replace("__", "::"): fields for name, fields in functions.items()}
        self.internal: list[str] = []
        self.answers = {LIST: self.listed, INFO: self.info}

    def listed(self, request):
        rows = [
            {"function_id": i, **{k: v for k, v in f.items() if k != "request_schema"}}
            for i, f in self.functions.items()
        ]
        hidden = [{"function_id": i} for i in self.internal] if request.get("include_internal") else []
        return {"functions": [*rows, *hidden]}

    def info(self, request):
        ids = request["function_ids"]
        assert len(ids) <= BATCH
        return {
            "functions": [
                {"function_id": i, **self.functions[i]}
                if i in self.functions
                else {"function_id": i, "error": "not_found"}
                for i in ids
            ]
        }


@pytest.mark.requirement("prompt.catalog.seed")
async def test_the_seed_lists_hydrates_and_learns_internal_ids() -> None:
    registry = Registry(b__x={"request_schema": {"type": "object"}, "description": "X"}, a__y={"worker_name": "w"})
    registry.internal = ["engine::functions::list"]
    catalog = Catalog(registry)
    assert not catalog.snapshot.known
    await catalog.refresh()
    now = catalog.snapshot
    assert list(now.functions) == ["a::y", "b::x"]
    assert now.functions["b::x"].parameters == {"type": "object"}
    assert now.functions["a::y"].worker_name == "w"
    assert now.has("engine::functions::list")
    assert "engine::functions::list" not in now.functions
    assert now.known


@pytest.mark.requirement("prompt.catalog.settled")
async def test_a_seed_knows_the_ids_and_the_registry_is_settled_with_its_first_reading() -> None:
    registry = Registry(a={"request_schema": {"v": 1}})
    catalog = Catalog(registry)
    for _ in range(2):
        await catalog.seed()
        with anyio.move_on_after(0.01) as waited:
            await catalog.settled()
        assert waited.cancelled_caught, "its contracts are not read yet"
        assert list(catalog.snapshot.functions) == ["a"]
        await catalog.refresh(whole=True)
        await catalog.settled()
        assert catalog.snapshot.functions["a"].parameters == {"v": 1}


@pytest.mark.requirement("prompt.catalog.settled")
async def test_a_registry_that_cannot_be_read_holds_nothing_up() -> None:
    registry = Registry()
    registry.answers[LIST] = BusError("TIMEOUT", "late")
    catalog = Catalog(registry)
    await catalog.seed()
    await catalog.refresh(whole=True)
    await catalog.settled()
    assert not catalog.snapshot.known


@pytest.mark.requirement("prompt.catalog.absent")
async def test_a_function_is_absent_once_this_connection_has_read_the_internal_ids_too() -> None:
    registry = Registry(a={})
    registry.internal = ["context::assemble"]
    catalog = Catalog(registry)
    for _ in range(2):
        await catalog.seed()
        assert not catalog.absent("nobody::serves"), "nothing is known of it on this connection"
        registry.answers[LIST] = BusError("TIMEOUT", "late")
        await catalog.refresh(whole=True)
        assert not catalog.absent("nobody::serves"), "a reading that failed tells nothing"
        registry.answers[LIST] = registry.listed
        await catalog.refresh()
        assert catalog.absent("nobody::serves")
        assert not catalog.absent("context::assemble")


@pytest.mark.requirement("prompt.catalog.hydration")
async def test_schemas_are_read_in_batches_and_one_by_one_where_batches_fail() -> None:
    registry = Registry(**{f"f__{n:03}": {"request_schema": {"n": n}} for n in range(70)})
    catalog = Catalog(registry)
    await catalog.refresh()
    assert [len(r["function_ids"]) for r in registry.asked(INFO)] == [32, 32, 6]
    assert catalog.snapshot.functions["f::069"].parameters == {"n": 69}

    def single(request):
        if "function_ids" in request:
            return BusError("INVALID_ARGUMENTS", "one id")
        return {"function_id": request["function_id"], "request_schema": {"single": True}}

    registry.answers[INFO] = single
    await catalog.refresh(whole=True)
    assert catalog.snapshot.functions["f::069"].parameters == {"single": True}


@pytest.mark.requirement("prompt.catalog.hydration")
async def test_a_failed_read_keeps_the_schema_and_an_answer_without_one_loses_it() -> None:
    registry = Registry(a={"request_schema": {"v": 1}})
    catalog = Catalog(registry)
    await catalog.refresh()
    registry.answers[INFO] = BusError("TIMEOUT", "late")
    await catalog.refresh(whole=True)
    assert catalog.snapshot.functions["a"].parameters == {"v": 1}
    registry.answers[INFO] = registry.info
    registry.functions["a"] = {}
    await catalog.refresh(whole=True)
    assert catalog.snapshot.functions["a"].parameters is None


@pytest.mark.requirement("prompt.catalog.refresh")
async def test_a_change_reads_new_ids_only_and_an_announcement_reads_all() -> None:
    registry = Registry(a={"request_schema": {"v": 1}})
    catalog = Catalog(registry)
    await catalog.refresh()
    registry.functions["a"] = {"request_schema": {"v": 2}}
    registry.functions["b"] = {"request_schema": {"v": 1}}
    registry.calls.clear()
    await catalog.on_change(FunctionsChange(event="functions_changed"), CALL)
    assert registry.asked(INFO) == [{"function_ids": ["b"]}]
    assert catalog.snapshot.functions["a"].parameters == {"v": 1}
    await catalog.on_change(FunctionsChange(event="worker_metadata_updated"), CALL)
    assert catalog.snapshot.functions["a"].parameters == {"v": 2}
    registry.calls.clear()
    await catalog.on_change(FunctionsChange(event="worker_connected"), CALL)
    assert registry.calls == []


@pytest.mark.requirement("prompt.catalog.generation")
async def test_the_generation_moves_with_ids_descriptions_and_schemas_alone() -> None:
    registry = Registry(a={"request_schema": {"v": 1}, "description": "A"})
    catalog = Catalog(registry)
    await catalog.refresh()
    seen = [catalog.snapshot.generation]

    async def after(change) -> None:
        change()
        await catalog.refresh(whole=True)
        seen.append(catalog.snapshot.generation)

    await after(lambda: None)
    await after(lambda: registry.internal.append("x"))
    await after(lambda: registry.functions["a"].update(worker_name="other"))
    assert len(set(seen)) == 1
    await after(lambda: registry.functions["a"].update(description="B"))
    await after(lambda: registry.functions["a"].update(request_schema={"v": 2}))
    await after(lambda: registry.functions.pop("a"))
    assert [b - a for a, b in zip(seen[-4:], seen[-3:], strict=False)] == [1, 1, 1]


@pytest.mark.requirement("prompt.catalog.internal")
async def test_an_unreadable_internal_list_keeps_the_old_ids_minus_those_that_left() -> None:
    registry = Registry(a={}, b={})
    registry.internal = ["hidden"]
    catalog = Catalog(registry)
    await catalog.refresh()
    del registry.functions["b"]
    registry.answers[LIST] = lambda r: BusError("TIMEOUT", "late") if r.get("include_internal") else registry.listed(r)
    await catalog.refresh()
    assert catalog.snapshot.internal_ids == {"a", "hidden"}


@pytest.mark.requirement("prompt.catalog.refresh")
async def test_a_registry_that_cannot_be_read_leaves_the_snapshot() -> None:
    registry = Registry(a={"request_schema": {"v": 1}})
    catalog = Catalog(registry)
    await catalog.refresh()
    before = catalog.snapshot
    for answer in (BusError("TIMEOUT", "late"), None, {"functions": None}, []):
        registry.answers[LIST] = answer
        await catalog.refresh(whole=True)
        assert catalog.snapshot is before


@pytest.mark.requirement("prompt.catalog.refresh")
async def test_refreshes_asked_for_meanwhile_become_one_more() -> None:
    gate = asyncio.Event()

    class Slow(Registry):
        async def call(self, fn, data, **rest):
            answer = await super().call(fn, data, **rest)
            await gate.wait()
            return answer

    registry = Slow(a={})
    catalog = Catalog(registry)
    refreshes = [asyncio.ensure_future(catalog.refresh()) for _ in range(5)]
    await asyncio.sleep(0)
    registry.functions["late"] = {}
    more = [asyncio.ensure_future(catalog.refresh(whole=True)) for _ in range(5)]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*refreshes, *more)
    assert len([r for r in registry.asked(LIST) if not r]) == 2
    assert "late" in catalog.snapshot.functions


@pytest.mark.requirement("prompt.catalog.seed")
async def test_of_one_id_in_several_namespaces_the_default_one_counts() -> None:
    rows = [
        {"function_id": "a", "namespace": "x", "description": "other"},
        {"function_id": "a", "namespace": "default", "description": "own"},
        {"function_id": 7},
        "odd",
    ]
    catalog = Catalog(Answers({LIST: {"functions": rows}, INFO: {"functions": []}}))
    await catalog.refresh()
    assert catalog.snapshot.functions["a"].description == "own"
