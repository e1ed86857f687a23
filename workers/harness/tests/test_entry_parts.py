"""The small parts of the entry: locks, signals, executing steps, working directory, frozen options, effort."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from iii_contracts.harness.configuration import HarnessConfig
from iii_contracts.harness.send import SendRequest
from iii_harness.entry.options import freeze
from iii_harness.entry.reasoning import ruling
from iii_harness.locks import Locks
from iii_harness.record import Contract, Options, Parent, Policy, TurnRecord
from iii_harness.seeding import seed
from iii_harness.signals import CancelSignals, ExecutingSteps
from iii_harness.working_directory import default_root, root_of, with_root
from iii_kit.errors import BusError, CodedError

pytestmark = pytest.mark.anyio

PRIOR = TurnRecord(
    turn_id="t1",
    session_id="s1",
    status="completed",
    options=Options(
        model="m",
        provider="p",
        system_prompt="kept",
        functions=Policy(allow=["a::*"]),
        thinking_level="high",
        provider_options={"p": {"x": 1}},
        metadata={"fs_scope": {"root": "/w"}},
    ),
    created_at=1,
    updated_at=1,
)


@pytest.mark.requirement("entry.locks")
async def test_a_lock_admits_one_in_order_of_arrival_and_leaves_nothing_behind():
    locks, log = Locks(), []

    async def work(n: int) -> None:
        async with locks.hold("k"):
            log.append(n)
            await asyncio.sleep(0)
            log.append(n)

    async with locks.hold("other"):
        await asyncio.gather(*(work(n) for n in range(5)))
        assert locks.held("other") and not locks.held("k")
    assert log == [n for n in range(5) for _ in range(2)] and len(locks) == 0


@pytest.mark.requirement("entry.locks")
async def test_a_cancelled_waiter_neither_holds_nor_keeps_the_lock():
    locks = Locks()
    async with locks.hold("k"):
        waiter = asyncio.ensure_future(_hold(locks))
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.wait([waiter])
        assert locks.held("k")
    assert len(locks) == 0


async def _hold(locks: Locks) -> None:
    async with locks.hold("k"):
        pass


@pytest.mark.requirement("entry.signals")
async def test_a_signal_holds_for_waits_before_and_after_it_until_it_is_cleared():
    signals = CancelSignals()
    before = asyncio.ensure_future(signals.wait("t"))
    other = asyncio.ensure_future(signals.wait("u"))
    await asyncio.sleep(0)
    signals.fire("t")
    await before
    await signals.wait("t")
    assert signals.fired("t") and not other.done()
    signals.clear("t")
    other.cancel()
    await asyncio.wait([other])
    assert not signals.fired("t") and len(signals) == 0


@pytest.mark.requirement("entry.executing")
def test_a_step_executes_once_and_a_session_as_long_as_one_of_its_steps():
    steps = ExecutingSteps()
    assert steps.enter("s", "t", 1) and not steps.enter("s", "t", 1) and steps.enter("s", "t", 2)
    steps.leave("s", "t", 1)
    assert steps.executing("s")
    steps.leave("s", "t", 2)
    steps.leave("s", "t", 2)
    assert not steps.executing("s") and len(steps) == 0


@pytest.mark.requirement("entry.root")
def test_the_root_is_inherited_unless_a_scope_is_named_and_defaults_for_a_first_turn():
    def started(options: Options, prior: TurnRecord | None) -> Any:
        return seed("s1", "t2", options, prior, now_ms=5, preview=None, default_root="/d").options.metadata

    plain = Options(model="m", metadata={"k": 1})
    assert started(plain, PRIOR) == {"k": 1, "fs_scope": {"root": "/w"}}
    assert started(plain, None) == {"k": 1, "fs_scope": {"root": "/d"}}
    for scope in ({}, {"root": "/own"}):
        named = Options(model="m", metadata={"fs_scope": scope})
        assert started(named, PRIOR) == started(named, None) == {"fs_scope": scope}
    assert (default_root("off"), default_root("/x")) == (None, "/x") and default_root(None)
    assert with_root("text", "/w") == "text" and root_of(with_root(None, "/w")) == "/w"


@pytest.mark.requirement("entry.seed.carries")
def test_a_new_turn_carries_lineage_and_what_the_model_knows_and_nothing_else():
    prior = replace(
        PRIOR,
        step=7,
        turn_count=3,
        depth=2,
        parent=Parent("s0", "t0", "f"),
        dispatch_only_functions=["x"],
        functions_acknowledged=["d"],
        function_contract_ledger={"f": Contract("a", "b", "c", eligible=True, repeats=4)},
        result="old",
        abort=True,
        watermark_entry_id="e",
        validation_retries=2,
    )
    fresh = seed("s1", "t2", prior.options, prior, now_ms=9, preview="p")
    assert fresh == TurnRecord(
        turn_id="t2",
        session_id="s1",
        status="running",
        options=prior.options,
        created_at=9,
        updated_at=9,
        message_preview="p",
        depth=2,
        parent=Parent("s0", "t0", "f"),
        dispatch_only_functions=["x"],
        functions_acknowledged=["d"],
        function_contract_ledger={"f": Contract("a", "b", "c", eligible=True)},
    )
    other = replace(prior.options, functions=None)
    assert seed("s1", "t2", other, prior, now_ms=9, preview=None).functions_acknowledged is None


class Router:
    """Answers the two look-ups of a catalogue row."""

    def __init__(self, row: dict[str, Any] | None) -> None:
        self.row = row
        self.asked: list[str] = []

    async def call(self, fn: str, data: Any, **_: Any) -> Any:
        self.asked.append(fn)
        if self.row is None:
            if fn == "router::models::get":
                return None
            raise BusError("router/unknown_model", "no such model")
        return {"model": self.row}


async def frozen(prior: TurnRecord | None = PRIOR, row: dict[str, Any] | None = None, **fields: Any) -> Options:
    options = fields.pop("options", {})
    request = SendRequest.model_validate({"message": "x", "session_id": "s1", "options": options, **fields})

    async def prompt(text: str | None, strategy: str | None) -> str | None:
        return None if strategy == "disabled" else f"fresh {text}"

    return await freeze(request, prior, HarnessConfig(default_max_turns=9), prompt, Router(row))  # type: ignore[arg-type]


@pytest.mark.requirement("entry.options.model")
async def test_the_model_is_asked_or_inherited_and_the_provider_goes_with_it():
    pairs = [
        ({}, ("m", "p")),
        ({"provider": "q"}, ("m", "q")),
        ({"model": "n"}, ("n", None)),
        ({"model": "n", "provider": "q"}, ("n", "q")),
    ]
    for fields, expected in pairs:
        options = await frozen(**fields)
        assert (options.model, options.provider) == expected
    with pytest.raises(CodedError) as error:
        await frozen(None)
    assert "`model` is required" in error.value.text


@pytest.mark.requirement("entry.options.policy")
async def test_an_explicit_policy_wins_even_an_empty_one_else_the_last_one_else_none():
    assert (await frozen()).functions == Policy(allow=["a::*"])
    assert (await frozen(options={"functions": {"allow": []}})).functions == Policy()
    assert (await frozen(None, model="m")).functions is None


@pytest.mark.requirement("entry.options.prompt")
async def test_the_prompt_is_kept_unless_a_prompt_field_is_named():
    assert (await frozen()).system_prompt == "kept"
    assert (await frozen(replace(PRIOR, options=replace(PRIOR.options, system_prompt=None)))).system_prompt is None
    assert (await frozen(options={"system_prompt": "t"})).system_prompt == "fresh t"
    assert (await frozen(options={"system_prompt_strategy": "enrich"})).system_prompt == "fresh None"
    assert (await frozen(options={"system_prompt_strategy": "disabled"})).system_prompt is None
    assert (await frozen(None, model="m")).system_prompt == "fresh None"


@pytest.mark.requirement("entry.options.pair")
async def test_level_and_provider_options_are_kept_and_replaced_as_a_pair():
    pairs = [
        ({}, ("high", {"p": {"x": 1}})),
        ({"thinking_level": "low"}, ("low", None)),
        ({"provider_options": {}}, (None, {})),
        ({"thinking_level": "low", "provider_options": {"q": 1}}, ("low", {"q": 1})),
    ]
    for asked, expected in pairs:
        options = await frozen(options=asked)
        assert (options.thinking_level, options.provider_options) == expected


@pytest.mark.requirement("entry.options.limits")
async def test_limits_come_from_the_request_or_the_configuration_never_from_the_last_turn():
    prior = replace(PRIOR, options=replace(PRIOR.options, max_turns=3, max_output_tokens=5))
    options = await frozen(prior)
    assert (options.max_turns, options.max_output_tokens) == (9, None)
    options = await frozen(prior, options={"max_turns": 0, "max_output_tokens": 7})
    assert (options.max_turns, options.max_output_tokens) == (0, 7)


@pytest.mark.requirement("entry.options.lowest")
@pytest.mark.parametrize(
    ("row", "level", "provider_options"),
    [
        ({"reasoning_efforts": [{"effort": "none"}, {"effort": "Low"}]}, "low", {"p": {"reasoning_effort": "Low"}}),
        ({"reasoning_efforts": [{"effort": "tiny"}]}, None, {"p": {"reasoning_effort": "tiny"}}),
        ({"reasoning_efforts": [{"effort": "none"}], "supports_thinking": True}, "minimal", {}),
        ({"supports_thinking": False}, None, {}),
    ],
)
async def test_the_lowest_effort_is_the_first_of_the_ladder_else_minimal_else_none(row, level, provider_options):
    for prior in (PRIOR, None):
        row = {"id": "m", "provider": "p", **row}
        options = await frozen(prior, row, model="m", options={"reasoning": "lowest"})
        assert (options.thinking_level, options.provider_options) == (level, provider_options)
        effort = provider_options.get("p", {}).get("reasoning_effort")
        expected = {"thinking_level": level, "reasoning_effort": effort}
        assert ruling(options) == {name: value for name, value in expected.items() if value is not None}


@pytest.mark.requirement("entry.options.lowest-unknown")
@pytest.mark.parametrize("provider", [None, "p"])
async def test_the_lowest_effort_of_a_model_without_a_catalogue_entry_is_refused(provider):
    with pytest.raises(CodedError) as error:
        await frozen(None, None, model="m", provider=provider, options={"reasoning": "lowest"})
    assert error.value.code == "harness/invalid_request" and "`options.reasoning`" in error.value.text
