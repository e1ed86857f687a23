"""Which functions a turn may call, by its policy alone (harness-loop 9A.1, harness-agents 2.1).

A policy is compiled once for its content and answers repeated ids from memory. No policy, an empty `allow` or one
pattern that does not compile denies everything; deny wins.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Literal

import msgspec

from iii_harness.globs import BadGlob, compile_globs
from iii_harness.record import Policy
from iii_kit.logs import logger

log = logger(__name__)

ANSWERS = 4096
"""Ids whose answer a compiled policy remembers."""


class CompiledPolicy:
    """A policy ready to answer. Equal policies share one object."""

    def __init__(
        self, allow: tuple[str, ...], deny: tuple[str, ...], expose: Literal["agent_trigger", "native"]
    ) -> None:
        self.allow = allow
        self.deny = deny
        self.expose: Literal["agent_trigger", "native"] = expose
        self.problem: str | None = None
        """Why the whole policy denies, when a pattern does not compile."""
        self.digest = hashlib.sha256(msgspec.json.encode([allow, deny, expose])).hexdigest()
        try:
            self._allow = compile_globs(allow)
            self._deny = compile_globs(deny)
        except BadGlob as error:
            self.problem = str(error)
            self._allow = self._deny = compile_globs(())
            log.warning("policy_denies_all", reason=self.problem)
        self.allows = lru_cache(maxsize=ANSWERS)(self._allows)
        """True when the policy lets the id be called."""

    @property
    def denies_all(self) -> bool:
        """True when no id at all can be allowed."""
        return not self.allow or self.problem is not None

    @property
    def allows_all(self) -> bool:
        """True when `allow` has `*`; `deny` may still narrow it."""
        return "*" in self.allow

    def _allows(self, function_id: str) -> bool:
        return self._allow.fullmatch(function_id) is not None and self._deny.fullmatch(function_id) is None


def compiled(policy: Policy | None) -> CompiledPolicy:
    """The compiled form of a policy; None denies everything."""
    if policy is None:
        return _compiled((), (), "agent_trigger")
    return _compiled(tuple(policy.allow), tuple(policy.deny), policy.expose)


@lru_cache(maxsize=512)
def _compiled(
    allow: tuple[str, ...], deny: tuple[str, ...], expose: Literal["agent_trigger", "native"]
) -> CompiledPolicy:
    return CompiledPolicy(allow, deny, expose)
