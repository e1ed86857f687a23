"""Identity, strategies, session context, sections."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_contracts.harness.send import SendOptions
from iii_harness.catalog import Snapshot
from iii_harness.policy import compiled
from iii_harness.prompt.identity import STORED, PromptResolver, embedded, identity, joined, names_prompt, resolve
from iii_harness.prompt.sections import sectioned, surface_digest
from iii_harness.prompt.session_context import AID_GLOBS, NO_CALLS, policy_aid, session_context
from iii_harness.record import Options, Policy
from iii_kit.errors import BusError
from iii_testing.answers import Answers

LISTED = Snapshot(internal_ids=frozenset({STORED}))


@pytest.mark.requirement("prompt.identity.text")
def test_the_identity_prompt_has_its_topics_and_its_size() -> None:
    text = embedded().text
    assert len(text) <= 6000
    for phrase in (
        "engine::functions::list",
        "engine::functions::info",
        "engine::workers::list",
        "engine::workers::info",
        "engine::triggers::list",
        "engine::triggers::info",
        "engine::registered-triggers::list",
        "agent_trigger",
        "function_ids",
        'contract_status: "unchanged_in_context"',
        "FAILED: <function> is denied by policy; needed to <purpose>",
        "outcome unknown",
        "materially new investigative or action phase",
        "One update may cover any number of related function calls",
        "lead with its concrete result",
        "summary of that whole batch",
        "For the ordinary text contract, use normal assistant text",
        "each call still needs its own `description`",
    ):
        assert phrase in text, phrase


@pytest.mark.requirement("prompt.identity.text")
def test_the_identity_prompt_names_nothing_that_is_not_served() -> None:
    text = embedded().text
    for phrase in (
        "harness::spawn",
        "harness::ask",
        "display",
        "orchestrator",
        "engine::register_trigger",
        "harness::react",
        "harness::notify_agent",
        "harness::trigger-call",
        "fp::",
        "condition_function_id",
        "directory::",
        "discovery_assist",
    ):
        assert phrase not in text, phrase
    lowered = text.lower()
    for phrase in (
        "wire, spawn, stop",
        "wire the consumers",
        "delegation is one-way",
        "fan-out",
        "fan-in",
        "react trigger",
    ):
        assert phrase not in lowered


@pytest.mark.requirement("prompt.strategies")
@pytest.mark.parametrize(
    ("text", "strategy", "base"),
    [
        (None, None, "I"),
        ("", None, "I"),
        ("T", None, "I\n\nT"),
        ("T", "enrich", "I\n\nT"),
        (None, "enrich", "I"),
        ("T", "override", "T"),
        ("", "override", "I"),
        (None, "override", "I"),
        ("T", "disabled", None),
        (None, "disabled", None),
    ],
)
def test_strategies(text, strategy, base) -> None:
    assert resolve("I", text, strategy) == base


@pytest.mark.requirement("prompt.stickiness")
@pytest.mark.parametrize(
    ("options", "named"),
    [
        (None, False),
        ({}, False),
        ({"max_turns": 3}, False),
        ({"system_prompt": None}, False),
        ({"system_prompt": ""}, True),
        ({"system_prompt": "T"}, True),
        ({"system_prompt_strategy": "enrich"}, True),
    ],
)
def test_naming_either_prompt_field_resolves_anew(options, named) -> None:
    assert names_prompt(None if options is None else SendOptions.model_validate(options)) == named


@pytest.mark.anyio
@pytest.mark.requirement("prompt.identity.stored")
async def test_a_stored_identity_wins_and_anything_odd_falls_back() -> None:
    assert (await identity(Answers({STORED: {"body": "Mine."}}), LISTED)).text == "Mine."
    assert (await identity(Answers({STORED: {"body": "Mine."}}), LISTED)).stored
    for answer in ({"body": "  \n"}, {}, None, {"body": 7}, BusError("TIMEOUT", "late"), "text"):
        assert await identity(Answers({STORED: answer}), LISTED) == embedded()
    unlisted = Answers({STORED: {"body": "Mine."}})
    assert await identity(unlisted, Snapshot()) == embedded()
    assert unlisted.calls == []


@pytest.mark.anyio
@pytest.mark.requirement("prompt.identity.stored")
async def test_a_composition_without_identity_reads_none() -> None:
    bus = Answers({STORED: {"body": "Mine."}})
    resolver = PromptResolver(bus, lambda: LISTED)
    assert await resolver("T", "override") == "T"
    assert await resolver("T", "disabled") is None
    assert bus.calls == []
    assert await resolver("T", None) == "Mine.\n\nT"
    assert await resolver("", "override") == "Mine."


@pytest.mark.requirement("prompt.layers")
def test_parts_are_joined_by_one_blank_line_without_trailing_newlines() -> None:
    assert joined("a\n\n", None, "", "\n", "b\r\n", " c ") == "a\n\nb\n\n c "


def options(policy: Policy | None, metadata: object = None) -> Options:
    return Options(model="m", functions=policy, metadata=metadata)


@pytest.mark.requirement("prompt.context.lines")
def test_the_context_block_in_order() -> None:
    narrow = Policy(allow=["demo::add"])
    block = session_context("s_1", options(narrow, {"fs_scope": {"root": "/work"}}), compiled(narrow)).split("\n")
    assert block[:2] == ["Your session id is s_1.", "Your working directory is /work."]
    assert block[2] == policy_aid(compiled(narrow))
    assert session_context("s_1", options(None), compiled(Policy(allow=["*"]))) == "Your session id is s_1."


@pytest.mark.requirement("prompt.context.aid")
def test_the_policy_aid() -> None:
    assert policy_aid(compiled(Policy(allow=["a::*", "*"], deny=["b"]))) is None
    for nothing in (None, Policy(), Policy(deny=["a"]), Policy(allow=["{"])):
        assert policy_aid(compiled(nothing)) == NO_CALLS
    aid = policy_aid(compiled(Policy(allow=["b", "a::*", "b"], deny=["d", "c"]))) or ""
    assert ": a::*, b." in aid
    assert "c, d" in aid
    for said in ("overrides", "directly", "denied", "Do not probe", "report"):
        assert said in aid
    many = policy_aid(compiled(Policy(allow=[f"f{n:02}" for n in range(AID_GLOBS + 1)]))) or ""
    assert "f29, …" in many
    assert "f30" not in many
    assert "…" not in (policy_aid(compiled(Policy(allow=[f"f{n:02}" for n in range(AID_GLOBS)]))) or "")


@pytest.mark.requirement("prompt.sections")
@given(st.text(max_size=20), st.text(max_size=20))
def test_sections_with_their_blank_line_are_the_prompt_byte_for_byte(base: str, rest: str) -> None:
    stable = joined(base)
    prompt = joined(base, rest)
    found = sectioned(prompt, stable, enabled=True)
    if found.sections is None:
        assert found.digest is found.cache_intent is None
        assert found.fallback == ("no_stable_prefix" if not stable else "prefix_rewritten")
        return
    first, second = found.sections
    assert f"{first['text']}\n\n{second['text']}" == prompt
    assert (first["cache_boundary"], second["cache_boundary"]) == (True, False)
    assert found.cache_intent == {"surface_digest": surface_digest(stable)}
    assert found.fallback is None


@pytest.mark.requirement("prompt.sections.fallback")
def test_why_there_are_no_sections() -> None:
    assert sectioned("a\n\nb", "a", enabled=False).fallback == "disabled"
    assert sectioned("a\n\nb", "", enabled=True).fallback == "no_stable_prefix"
    for rewritten in ("x\n\na\n\nb", "a\nb", "a\n\n\nb", "ab", "a", None):
        assert sectioned(rewritten, "a", enabled=True).fallback == "prefix_rewritten"


@pytest.mark.requirement("prompt.sections")
def test_the_digest_is_the_hash_of_the_stable_text() -> None:
    assert surface_digest("abc") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
