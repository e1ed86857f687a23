"""The glob language of function policies (harness-loop 9A.1, harness-agents 2.1).

`*` any run of characters, `?` one character, `[abc]` `[a-z]` `[!a]` classes, `{a,b}` alternatives, `\\` takes the next
character literally. Whole string, case-sensitive. Alternatives are multiplied out, and each `*` settles on its first
fit, so that no pattern can make a match slow: policies and ids come from outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

MAX_ALTERNATIVES: Final = 1024
"""Patterns that the alternatives of one glob may multiply out to."""

STAR: Final = "*"

Sequence: TypeAlias = tuple[str, ...]
"""One alternative-free glob: `STAR`, or the regular expression of exactly one character."""


class BadGlob(ValueError):
    """A glob that does not compile; the text says why."""


def compile_globs(globs: Iterable[str]) -> re.Pattern[str]:
    """A pattern whose `fullmatch` tells whether any of `globs` matches. Raises `BadGlob`."""
    parts = [_regex(sequence) for glob in globs for sequence in expand(glob)]
    return re.compile("|".join(parts) if parts else r"(?!)", re.DOTALL)


def expand(glob: str) -> list[Sequence]:
    """`glob` without alternatives, multiplied out. Raises `BadGlob`."""
    if not glob:
        raise BadGlob("an empty pattern matches nothing")
    return _Reader(glob).read()


def _regex(sequence: Sequence) -> str:
    """Runs of single characters between stars; all but the last are taken at their first place, for good."""
    runs: list[str] = [""]
    for token in sequence:
        if token == STAR:
            runs.append("")
        else:
            runs[-1] += token
    if len(runs) == 1:
        return f"(?:{runs[0]})"
    first, *middle, last = runs
    return f"(?:{first}" + "".join(f"(?>.*?{run})" for run in middle if run) + f".*{last})"


class _Reader:
    """Recursive descent over one glob."""

    def __init__(self, glob: str) -> None:
        self._glob = glob
        self._at = 0

    def read(self) -> list[Sequence]:
        found = self._sequence(inside=False)
        if self._at < len(self._glob):
            raise BadGlob(f"`{self._glob}` closes an alternative that it never opens")
        return found

    def _sequence(self, *, inside: bool) -> list[Sequence]:
        """Up to the end, or `inside` braces up to the `,` or `}` that ends this alternative."""
        found: list[Sequence] = [()]
        while self._at < len(self._glob):
            char = self._glob[self._at]
            if char == "}" or (inside and char == ","):
                break
            self._at += 1
            if char == "{":
                found = self._product(found, self._alternatives())
            else:
                token = self._token(char)
                found = [(*head, token) for head in found]
        return found

    def _product(self, heads: list[Sequence], tails: list[Sequence]) -> list[Sequence]:
        if len(heads) * len(tails) > MAX_ALTERNATIVES:
            raise BadGlob(f"`{self._glob}` has more than {MAX_ALTERNATIVES} alternatives")
        return [head + tail for head in heads for tail in tails]

    def _alternatives(self) -> list[Sequence]:
        found: list[Sequence] = []
        while True:
            found += self._sequence(inside=True)
            if self._at >= len(self._glob):
                raise BadGlob(f"`{self._glob}` leaves an alternative open")
            self._at += 1
            if self._glob[self._at - 1] == "}":
                return found

    def _token(self, char: str) -> str:
        if char == "*":
            return STAR
        if char == "?":
            return "."
        if char == "[":
            return self._class()
        return re.escape(self._literal() if char == "\\" else char)

    def _literal(self) -> str:
        """The character behind a backslash."""
        if self._at >= len(self._glob):
            raise BadGlob(f"`{self._glob}` ends in a backslash")
        self._at += 1
        return self._glob[self._at - 1]

    def _class(self) -> str:
        """A class; `]` right after its opening is a member."""
        negated = self._glob.startswith("!", self._at)
        self._at += negated
        members: list[str] = []
        while True:
            if self._at >= len(self._glob):
                raise BadGlob(f"`{self._glob}` leaves a class open")
            if self._glob[self._at] == "]" and members:
                self._at += 1
                return f"[{'^' if negated else ''}{''.join(members)}]"
            members.append(self._member())

    def _member(self) -> str:
        low = self._class_char()
        ahead = self._glob[self._at : self._at + 2]
        if len(ahead) < 2 or ahead[0] != "-" or ahead[1] == "]":
            return re.escape(low)
        self._at += 1
        high = self._class_char()
        if high < low:
            raise BadGlob(f"`{self._glob}` has the empty range {low}-{high}")
        return f"{re.escape(low)}-{re.escape(high)}"

    def _class_char(self) -> str:
        self._at += 1
        char = self._glob[self._at - 1]
        return self._literal() if char == "\\" else char
