"""The text of a denial: the id, the policy, that repeating is futile, and what may have been meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_harness.catalog import INFO, Descriptor, Snapshot
from iii_harness.gate import FUTILE, CallGate, edits
from iii_harness.policy import compiled
from iii_harness.record import Policy


def gate(policy: Policy | None, *known: str, internal: frozenset[str] = frozenset()) -> CallGate:
    return CallGate(compiled(policy), Snapshot({i: Descriptor(i) for i in known}, internal, known=True))


@pytest.mark.requirement("prompt.gate.denial_text")
def test_a_denial_names_the_id_and_the_policy_and_says_that_repeating_is_futile() -> None:
    denial = gate(Policy(allow=["demo::*"], deny=["demo::rm"])).denial("shell::run", {})
    assert denial is not None
    for part in ("`shell::run`", "`demo::*`", "`demo::rm`", FUTILE):
        assert part in denial
    assert gate(Policy(allow=["demo::*"])).denial("demo::add", {}) is None


@pytest.mark.requirement("prompt.gate.denial_text")
def test_a_policy_that_denies_everything_says_so() -> None:
    assert "no function at all" in (gate(None).denial("a::b", {}) or "")
    assert "does not compile" in (gate(Policy(allow=["{"])).denial("a::b", {}) or "")


@pytest.mark.requirement("prompt.gate.hint")
@pytest.mark.parametrize(
    ("asked", "hinted"),
    [
        ("demo::ad", True),
        ("demo::a", True),
        ("demo::addxx", True),
        ("demo::addxxx", False),
        ("denied::run", False),
        ("secret::run", False),
    ],
)
def test_an_unknown_id_near_a_permitted_one_brings_a_hint(asked: str, hinted: bool) -> None:
    allowed = Policy(allow=["demo::add", "demo::subtract"])
    text = gate(allowed, "demo::add", "demo::subtract", "denied::ran", internal=frozenset({"demo::a1"})).denial(
        asked, {}
    )
    assert text is not None
    assert ("did you mean `demo::add`" in text) == hinted
    assert "denied::ran" not in text


@pytest.mark.requirement("prompt.gate.hint")
def test_a_known_id_brings_no_hint_and_long_ids_allow_more_edits() -> None:
    allowed = Policy(allow=["demo::add"])
    known = gate(allowed, "demo::add", "demo::adx", internal=frozenset({"demo::ad1"}))
    assert "did you mean" not in (known.denial("demo::adx", {}) or "")
    assert "did you mean" not in (known.denial("demo::ad1", {}) or "")
    name = "a" * 40
    near = gate(Policy(allow=[name]), name)
    assert "did you mean" in (near.denial(name[:-5] + "bbbbb", {}) or "")
    assert "did you mean" not in (near.denial(name[:-6] + "bbbbbb", {}) or "")


DETAIL = {"function_id": "demo::add", "description": "Adds.", "request_schema": {"type": "object"}}


def message(call_id: str, content: object) -> dict:
    return {"role": "function_result", "function_call_id": call_id, "content": content}


@pytest.mark.requirement("prompt.discovery.unchanged")
def test_a_gate_points_at_contracts_that_stand_in_the_messages_of_its_step() -> None:
    shown: list[dict] = []
    at_work = CallGate(compiled(Policy(allow=["*"])), Snapshot(), lambda: shown)
    other = {**DETAIL, "function_id": "demo::sub"}
    first = at_work.present("c1", INFO, {}, DETAIL, {})
    assert first is not None
    second = at_work.present("c2", INFO, {}, other, first.ledger)
    assert second is not None
    assert set(second.ledger) == {"demo::add", "demo::sub"}, "what this step showed is kept until a context has it"
    shown += [message("c1", first.content), message("c2", second.content)]
    third = at_work.present("c3", INFO, {}, {"functions": [DETAIL, other]}, second.ledger)
    assert third is not None
    assert str(third.content).count("unchanged_in_context") == 2
    del shown[0]
    fourth = at_work.present("c4", INFO, {}, {"functions": [DETAIL, other]}, third.ledger)
    assert fourth is not None
    assert str(fourth.content).count("unchanged_in_context") == 1
    assert at_work.present("c5", "demo::add", {}, DETAIL, {}) is None


def slow_edits(one: str, other: str) -> int:
    if not one or not other:
        return len(one) + len(other)
    return min(
        slow_edits(one[1:], other) + 1,
        slow_edits(one, other[1:]) + 1,
        slow_edits(one[1:], other[1:]) + (one[0] != other[0]),
    )


@pytest.mark.requirement("prompt.gate.hint")
@given(st.text("ab", max_size=5), st.text("ab", max_size=5), st.integers(0, 4))
def test_edits_count_what_a_slow_count_counts(one: str, other: str, limit: int) -> None:
    assert edits(one, other, limit) == min(slow_edits(one, other), limit + 1)
