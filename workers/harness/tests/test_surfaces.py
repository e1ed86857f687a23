"""The surface of a step: tools, prompt, notices; and the prefix that never changes."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from iii_harness.catalog import INFO, Descriptor, Snapshot
from iii_harness.ports import Item, Surface
from iii_harness.prompt.notices import LEAD_IN
from iii_harness.record import Options, Policy, TurnRecord
from iii_harness.surfaces import StepSurfaces, permitted
from iii_harness.tools import AGENT_TRIGGER

pytestmark = pytest.mark.anyio
ALL = Policy(allow=["*"])


async def at_once() -> None:
    """A registry that has been read."""


def registry(*ids: str, **described: str) -> Snapshot:
    functions = {
        i: Descriptor(i, described.get(i.replace("::", "__")), {"type": "object", "title": i}) for i in sorted(ids)
    }
    return Snapshot(functions, frozenset({INFO}), generation=1, known=True)


def record(policy: Policy | None = ALL, prompt: str | None = "I am.", **fields) -> TurnRecord:
    options = Options(model="m", functions=policy, system_prompt=prompt)
    return TurnRecord(
        turn_id="t_1", session_id="s_1", status="running", options=options, created_at=0, updated_at=0, **fields
    )


async def surface(of: TurnRecord, path: list[Item] = [], snapshot: Snapshot | None = None, sections=True) -> Surface:  # noqa: B006
    return await StepSurfaces(lambda: snapshot or registry(), lambda: sections, at_once).of_step(of, path)


def frozen(text: str) -> Item:
    return Item("e_t_0_runtime_context", custom_type="runtime_context", data={"aid": text})


def notice(kind: str, text: str, n: int = 0) -> Item:
    return Item(f"e_t_{n}_notice_0", custom_type="model_notice", data={"kind": kind, "text": text, "message": {}})


@pytest.mark.requirement("prompt.layers")
async def test_the_prompt_is_base_then_context() -> None:
    made = await surface(record())
    assert made.system_prompt == "I am.\n\nYour session id is s_1."
    assert made.system_sections == [
        {"text": "I am.", "cache_boundary": True},
        {"text": "Your session id is s_1.", "cache_boundary": False},
    ]
    without = await surface(record(prompt=None))
    assert without.system_prompt == "Your session id is s_1."
    assert (without.system_sections, without.sections_fallback) == (None, "no_stable_prefix")
    assert (await surface(record(), sections=False)).sections_fallback == "disabled"


@pytest.mark.requirement("prompt.context.frozen")
async def test_the_context_is_frozen_on_the_first_step_and_rendered_as_stored() -> None:
    first = await surface(record())
    assert first.runtime_context == "Your session id is s_1."
    narrower = record(Policy(allow=["demo::add"]))
    later = await surface(narrower, [Item("e_1"), frozen(first.runtime_context)])
    assert later.runtime_context is None
    assert later.system_prompt == first.system_prompt
    assert [n.kind for n in later.notices] == ["runtime-context"]
    assert later.notices[0].text.startswith(f"{LEAD_IN}\nYour session id is s_1.\nIn this session you may call")


@pytest.mark.requirement("prompt.notices.context")
async def test_a_change_of_context_is_told_once_and_again_when_it_changes_again() -> None:
    path = [frozen("Your session id is s_1.")]
    assert (await surface(record(), path)).notices == ()
    narrow = record(Policy(allow=["demo::add"]))
    (told,) = (await surface(narrow, path)).notices
    path.append(notice(told.kind, told.text))
    assert (await surface(narrow, path)).notices == ()
    (back,) = (await surface(record(), path)).notices
    assert back.text == f"{LEAD_IN}\nYour session id is s_1."
    path.append(notice(back.kind, back.text, 1))
    assert (await surface(record(), path)).notices == ()


@pytest.mark.requirement("prompt.notices.compacted")
async def test_a_notice_that_was_summarised_away_counts_as_not_told() -> None:
    narrow = record(Policy(allow=["demo::add"]))
    (told,) = (await surface(narrow, [frozen("Your session id is s_1.")])).notices
    path = [frozen("Your session id is s_1."), notice(told.kind, told.text), Item("e_tail")]

    def compaction(data: object) -> Item:
        return Item("e_c", custom_type="compaction", data=data)

    for cut in ({"summary": "s", "tail_start_entry_id": None}, {"summary": "s", "tail_start_entry_id": "e_tail"}):
        again = (await surface(narrow, [*path, compaction(cut)])).notices
        assert [n.text for n in again] == [told.text]
    for whole in (
        {"tail_start_entry_id": None},
        {"summary": "s"},
        {"summary": "s", "tail_start_entry_id": "gone"},
        None,
    ):
        assert (await surface(narrow, [*path, compaction(whole)])).notices == ()


@pytest.mark.requirement("prompt.prefix_stable")
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from([ALL, None, Policy(["a::*"]), Policy(["*"], ["b"])]), st.sets(st.sampled_from("abc"))
        ),
        min_size=1,
        max_size=6,
    )
)
async def test_whatever_changes_tools_and_prompt_keep_their_bytes(steps) -> None:
    path: list[Item] = []
    sent = set()
    acknowledged = None
    for n, (policy, ids) in enumerate(steps):
        made = await surface(record(policy, functions_acknowledged=acknowledged), path, registry(*ids))
        if made.runtime_context is not None:
            path.append(frozen(made.runtime_context))
        path.extend(notice(told.kind, told.text, n) for told in made.notices)
        acknowledged = made.acknowledged
        sent.add((made.system_prompt, repr(made.system_sections), repr(made.tools), repr(made.cache_intent)))
    assert len(sent) == 1


@pytest.mark.requirement("prompt.notices.registry")
async def test_a_changed_or_gone_function_is_told_and_one_that_joined_is_not() -> None:
    before = permitted(registry("a", "b"), StepSurfaces(registry, bool, at_once).gate(record()).policy)
    seen = record(functions_acknowledged=before)
    path = [frozen("Your session id is s_1.")]
    assert (await surface(record(), path, registry("a"))).notices == ()
    assert (await surface(seen, path, registry("a", "b", "c"))).notices == ()
    for changed in (registry("a"), registry("a", "b", a="now described")):
        (told,) = (await surface(seen, path, changed)).notices
        assert told.kind == "registry-changed"
        assert told.text.startswith("NOTE: the function registry changed during this conversation.")
        assert "stale" in told.text
        assert INFO in told.text
    without_info = replace(seen, options=replace(seen.options, functions=Policy(["a", "b"])))
    told = (await surface(without_info, path, registry("a"))).notices[0]
    assert INFO not in told.text
    assert "instead of guessing" in told.text


@pytest.mark.requirement("prompt.notices.registry")
async def test_functions_outside_the_policy_and_an_unread_registry_are_silent() -> None:
    narrow = Policy(allow=["a"])
    policy = StepSurfaces(registry, bool, at_once).gate(record(narrow)).policy
    seen = record(narrow, functions_acknowledged=permitted(registry("a", "b"), policy))
    path = [frozen((await surface(seen)).runtime_context or "")]
    assert (await surface(seen, path, registry("a"))).notices == ()
    unread = await surface(seen, path, Snapshot())
    assert unread.notices == ()
    assert unread.acknowledged is None


@pytest.mark.requirement("prompt.notices.order")
async def test_the_registry_is_told_before_the_context() -> None:
    seen = record(Policy(allow=["a", "b"]), functions_acknowledged=["gone00"])
    made = await surface(seen, [frozen("Your session id is s_1.")], registry("a"))
    assert [told.kind for told in made.notices] == ["registry-changed", "runtime-context"]


@pytest.mark.requirement("prompt.tools.agent_trigger")
@pytest.mark.parametrize("policy", [None, ALL, Policy(allow=["{"])])
async def test_agent_trigger_is_offered_whatever_the_policy_allows(policy: Policy | None) -> None:
    made = await surface(record(policy), snapshot=registry("a", "b"))
    assert made.tools == [AGENT_TRIGGER]
    parameters = made.tools[0]["parameters"]
    assert parameters["required"] == ["function"]
    assert {name: spec["type"] for name, spec in parameters["properties"].items()} == {
        "function": "string",
        "description": "string",
        "payload": "object",
    }
    assert made.tools[0]["execution_mode"] == "sequential"


@pytest.mark.requirement("prompt.tools.native")
async def test_native_exposure_offers_each_allowed_function_sorted() -> None:
    native = Policy(allow=["*"], deny=["c"], expose="native")
    seen = record(native, dispatch_only_functions=["d"])
    made = await surface(seen, snapshot=registry("b::x", "a", "c", "d", "harness::send", a="Does a."))
    assert [(t["name"], t["description"]) for t in made.tools] == [("a", "Does a."), ("b::x", "")]
    assert made.tools[0]["parameters"] == {"type": "object"}
    assert (await surface(record(Policy(expose="native")), snapshot=registry("a"))).tools == []


@pytest.mark.requirement("prompt.tools.native")
@pytest.mark.parametrize(
    "schema", [None, {}, True, [], "odd", {"type": "string"}, {"type": ["object", "null"]}, {"title": "T"}]
)
def test_an_odd_schema_never_reaches_a_provider(schema: object) -> None:
    assert Descriptor("a", None, schema).tool["parameters"] == {"type": "object"}


@pytest.mark.requirement("prompt.acknowledged")
async def test_the_acknowledged_set_is_that_of_the_permitted_functions() -> None:
    made = await surface(record(Policy(allow=["a*"])), snapshot=registry("a", "ab", "b"))
    assert made.acknowledged == sorted(made.acknowledged or [])
    assert len(made.acknowledged or []) == 2
    same = await surface(record(Policy(allow=["a*"])), snapshot=registry("a", "ab", "c"))
    assert same.acknowledged == made.acknowledged


@pytest.mark.requirement("prompt.catalog.settled")
async def test_a_step_waits_until_the_contracts_have_been_read() -> None:
    read = anyio.Event()
    snapshots = [registry()]
    surfaces = StepSurfaces(lambda: snapshots[-1], lambda: True, read.wait)
    made: list[Surface] = []

    async def step() -> None:
        made.append(await surfaces.of_step(record(), []))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(step)
        await anyio.wait_all_tasks_blocked()
        assert not made
        snapshots.append(registry("a::b"))
        read.set()
    assert made[0].acknowledged == permitted(
        registry("a::b"), StepSurfaces(registry, bool, at_once).gate(record()).policy
    )
