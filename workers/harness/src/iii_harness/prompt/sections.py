"""The part of a prompt that providers may cache, and its digest (harness-agents 3.1, 3.9, harness-loop 7.3)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

Fallback = Literal["disabled", "no_stable_prefix", "prefix_rewritten"]
"""Why a prompt goes out without sections."""


@dataclass(frozen=True, slots=True)
class Sections:
    """The sections of a prompt and the digest of its stable part; or why there are none."""

    sections: list[dict[str, Any]] | None = None
    digest: str | None = None
    fallback: Fallback | None = None

    @property
    def cache_intent(self) -> dict[str, Any] | None:
        """What a provider is told of the cache."""
        return None if self.digest is None else {"surface_digest": self.digest}


def sectioned(prompt: str | None, stable: str, *, enabled: bool) -> Sections:
    """The sections of `prompt`: `stable`, one blank line, the rest; together they are the prompt byte for byte."""
    if not enabled:
        return Sections(fallback="disabled")
    if not stable:
        return Sections(fallback="no_stable_prefix")
    head = f"{stable}\n\n"
    if prompt is None or not prompt.startswith(head) or prompt.startswith("\n", len(head)):
        return Sections(fallback="prefix_rewritten")
    sections = [
        {"text": stable, "cache_boundary": True},
        {"text": prompt[len(head) :], "cache_boundary": False},
    ]
    return Sections(sections, surface_digest(stable))


@lru_cache(maxsize=256)
def surface_digest(stable: str) -> str:
    """Identity of a stable prefix."""
    return f"sha256:{hashlib.sha256(stable.encode('utf-8', 'surrogatepass')).hexdigest()}"
