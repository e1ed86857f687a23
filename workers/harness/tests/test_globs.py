"""Globs against a slow matcher that follows the words of the specification, and their limits."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_harness.globs import MAX_ALTERNATIVES, BadGlob, compile_globs


class Slow:
    """Backtracking over the raw text, one rule per character; returns every place at which a match may end."""

    def __init__(self, glob: str) -> None:
        self.glob = glob

    def matches(self, text: str) -> bool:
        return bool(self.glob) and any(g == len(self.glob) and t == len(text) for g, t in self.ends(0, text, 0, False))

    def ends(self, g, text, t, inside):
        """All (place in glob, place in text) where the sequence from `g` can end."""
        if g >= len(self.glob):
            return {(g, t)}
        char = self.glob[g]
        if char == "}" or (inside and char == ","):
            return {(g, t)}
        if char == "*":
            return set().union(*(self.ends(g + 1, text, at, inside) for at in range(t, len(text) + 1)))
        if char == "{":
            return self.alternatives(g + 1, text, t, inside)
        g, fits = self.single(g, text[t] if t < len(text) else None)
        return self.ends(g, text, t + 1, inside) if fits else set()

    def alternatives(self, g, text, t, inside):
        found = set()
        while True:
            found |= {at for _, at in self.ends(g, text, t, True)}
            mark = self.next_mark(g)
            g = mark + 1
            if self.glob[mark] == "}":
                return set().union(*(self.ends(g, text, at, inside) for at in found))

    def next_mark(self, g):
        """The `,` or `}` that ends the alternative which begins at `g`."""
        depth = 0
        while True:
            char = self.glob[g]
            if char == "\\":
                g += 1
            elif char == "[":
                g = self.class_end(g)
            elif char == "{":
                depth += 1
            elif char == "}" and depth:
                depth -= 1
            elif depth == 0 and char in ",}":
                return g
            g += 1

    def class_end(self, g):
        g += 1 + self.glob.startswith("!", g + 1)
        first = g
        while self.glob[g] != "]" or g == first:
            g += 2 if self.glob[g] == "\\" else 1
        return g

    def single(self, g, char):
        if self.glob[g] == "?":
            return g + 1, char is not None
        if self.glob[g] == "\\":
            return g + 2, char == self.glob[g + 1]
        if self.glob[g] != "[":
            return g + 1, char == self.glob[g]
        end = self.class_end(g)
        negated = self.glob.startswith("!", g + 1)
        return end + 1, char is not None and self.in_class(g + 1 + negated, end, char) != negated

    def in_class(self, g, end, char):
        members = []
        while g < end:
            g += self.glob[g] == "\\"
            low, g = self.glob[g], g + 1
            if g + 1 < end and self.glob[g] == "-":
                g += 1
                g += self.glob[g] == "\\"
                members.append((low, self.glob[g]))
                g += 1
            else:
                members.append((low, low))
        return any(low <= char <= high for low, high in members)


PLAIN = st.sampled_from(["a", "b", "::", "-", ".", "(", "+", "^", "!", "]", ",", "\n"])
CLASSES = st.sampled_from(["[ab]", "[!a]", "[a-c]", "[!a-b:]", "[]a]", "[!]a]", "[^a]", "[\\]b]", "[a-]", "[.]"])
ATOMS = PLAIN | CLASSES | st.sampled_from(["*", "?", "\\*", "\\{", "\\\\", "\\a", "**", "*::*"])
SEQUENCES = st.recursive(
    st.lists(ATOMS, max_size=4).map("".join),
    lambda inner: st.lists(st.lists(inner, min_size=1, max_size=3).map(lambda s: "{" + ",".join(s) + "}") | ATOMS).map(
        lambda parts: "".join(parts[:3])
    ),
    max_leaves=5,
)
IDS = st.text(st.sampled_from("abc:-,!^]*?{}.\\(+\n"), max_size=8)


@pytest.mark.requirement("prompt.policy.globs")
@given(SEQUENCES.filter(bool), IDS)
def test_a_glob_matches_exactly_what_the_slow_matcher_matches(glob: str, text: str) -> None:
    assert bool(compile_globs([glob]).fullmatch(text)) == Slow(glob).matches(text)


@pytest.mark.requirement("prompt.policy.globs")
@given(st.lists(SEQUENCES.filter(bool), max_size=3), IDS)
def test_several_globs_match_what_any_of_them_matches(globs: list[str], text: str) -> None:
    assert bool(compile_globs(globs).fullmatch(text)) == any(Slow(glob).matches(text) for glob in globs)


@pytest.mark.requirement("prompt.policy.globs")
@pytest.mark.parametrize(
    ("glob", "text", "fits"),
    [
        ("shell::*", "shell::run", True),
        ("shell::*", "shell::fs::read", True),
        ("shell::*", "fs::read", False),
        ("shell::*", "SHELL::run", False),
        ("run", "xrun", False),
        ("*", "a/b\nc", True),
        ("*", "", True),
        ("engine::{functions,workers}::{list,info}", "engine::workers::info", True),
        ("engine::{functions,workers}::{list,info}", "engine::workers::infos", False),
        ("{a,}b", "b", True),
    ],
)
def test_examples(glob: str, text: str, fits: bool) -> None:
    assert bool(compile_globs([glob]).fullmatch(text)) == fits


@pytest.mark.requirement("prompt.policy.bad_glob")
@pytest.mark.parametrize("glob", ["", "[a", "[", "[!", "[]", "{a", "{a,b", "a}", "a\\", "[a\\", "[b-a]", "{a,{b}"])
def test_a_pattern_that_is_not_one_is_refused_by_name(glob: str) -> None:
    with pytest.raises(BadGlob) as caught:
        compile_globs(["*", glob])
    assert (glob or "empty") in str(caught.value)


@pytest.mark.requirement("prompt.policy.glob_cost")
def test_alternatives_that_multiply_without_end_are_refused() -> None:
    compile_globs(["{a,b}" * 10])
    with pytest.raises(BadGlob, match=str(MAX_ALTERNATIVES)):
        compile_globs(["{a,b}" * 11])


@pytest.mark.requirement("prompt.policy.glob_cost")
def test_many_stars_over_a_long_id_stay_quick() -> None:
    pattern = compile_globs(["*a" * 30 + "*b", "*aa" * 30 + "b"])
    started = time.perf_counter()
    assert pattern.fullmatch("a" * 20_000) is None
    assert time.perf_counter() - started < 2
