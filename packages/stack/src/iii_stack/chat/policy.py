"""What `--allow` and `--deny` make of the policy of a chat (design, "Decided interfaces").

A denied pattern wins over an allowed one, so allowing a function that a pattern denies means taking it out of that
pattern: the pattern is replaced by what is left of it, written in the same glob language.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from iii_contracts.policy import CHAT_POLICY
from iii_stack.errors import StackError

_SIMPLE = re.compile(r"[a-z0-9_:.-]+\*?|\*")


def chat_policy(allow: Sequence[str] = (), deny: Sequence[str] = ()) -> dict[str, Any]:
    """The policy of a chat that also allows and denies these: ids, or beginnings of ids with a `*` behind."""
    for name, patterns in (("--allow", allow), ("--deny", deny)):
        for pattern in patterns:
            if not _SIMPLE.fullmatch(pattern):
                raise StackError(
                    "invalid_pattern",
                    f"{name} {pattern}: not a function id",
                    hint="give an id such as session::list, or the beginning of ids such as 'session::*'",
                )
    denied = [rest for pattern in CHAT_POLICY.deny for rest in _without(pattern, allow)]
    return {"allow": [*CHAT_POLICY.allow], "deny": [*denied, *deny], "expose": CHAT_POLICY.expose}


def _without(denied: str, allowed: Sequence[str]) -> list[str]:
    """The patterns that match what `denied` matches, but for what an allowed one does."""
    if any(_covers(pattern, denied) for pattern in allowed):
        return []
    inside = [pattern for pattern in allowed if _covers(denied, pattern)]
    if not inside:
        return [denied]
    start = denied.removesuffix("*")
    return [start + rest for rest in _complement([pattern.removeprefix(start) for pattern in inside])]


def _covers(pattern: str, other: str) -> bool:
    if not pattern.endswith("*"):
        return pattern == other
    return other.startswith(pattern[:-1])


def _complement(endings: list[str]) -> list[str]:
    """Globs of every text that none of `endings` matches, each a literal that may end in `*`."""
    if "*" in endings:
        return []
    rest = [] if "" in endings else [""]
    branches: dict[str, list[str]] = {}
    for ending in endings:
        if ending:
            branches.setdefault(ending[0], []).append(ending[1:])
    letters = "".join(sorted(branches, key=lambda letter: (letter == "-", letter)))
    rest.append(f"[!{letters}]*" if letters else "?*")
    for letter, tails in branches.items():
        rest.extend(letter + tail for tail in _complement(tails))
    return rest
