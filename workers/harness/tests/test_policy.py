"""The policy decides by globs alone: deny wins, nothing given denies everything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_harness.policy import compiled
from iii_harness.record import Policy

GLOBS = st.lists(st.sampled_from(["*", "a::*", "b::?", "a::x", "{a,b}::y", "[", ""]), max_size=3)
IDS = st.sampled_from(["a::x", "a::y", "b::x", "b::y", "c", "a::x::z"])


@pytest.mark.requirement("prompt.policy.allows")
@given(GLOBS, GLOBS, IDS)
def test_allowed_means_some_allow_and_no_deny_and_every_pattern_valid(
    allow: list[str], deny: list[str], function_id: str
) -> None:
    def any_of(globs: list[str]) -> bool:
        return any(compiled(Policy(allow=[glob])).allows(function_id) for glob in globs)

    valid = not {"[", ""} & {*allow, *deny}
    assert compiled(Policy(allow=allow, deny=deny)).allows(function_id) == (
        valid and any_of(allow) and not any_of(deny)
    )


@pytest.mark.requirement("prompt.policy.allows")
@pytest.mark.parametrize("policy", [None, Policy(), Policy(deny=["x"]), Policy(allow=["*", "{"]), Policy(["*"], [""])])
def test_no_policy_no_allow_or_a_bad_pattern_denies_everything(policy: Policy | None) -> None:
    assert not compiled(policy).allows("a::x")
    assert compiled(policy).denies_all


@pytest.mark.requirement("prompt.policy.compiled_once")
def test_equal_policies_share_one_compiled_form() -> None:
    assert compiled(Policy(allow=["a::*"], deny=["b"])) is compiled(Policy(allow=["a::*"], deny=["b"]))
    digests = {
        compiled(policy).digest for policy in (None, Policy(["a"]), Policy([], ["a"]), Policy(["a"], [], "native"))
    }
    assert len(digests) == 4
