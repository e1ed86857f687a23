"""`harness::context-policy` (harness-agents 3.13): models that bind their reasoning to the exact earlier prefix."""

from __future__ import annotations

from typing import Any, Final

from iii_contracts.harness.context import ContextPolicyRequest
from iii_kit.bus import Invocation

PREFIX_BOUND: Final = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-1")
"""Parts of the ids of such models; dated, vendor-prefixed and routed ids contain them."""


def allows_prune(model: str) -> bool:
    """True when aged results may be cut out of the model's context."""
    return not any(part in model for part in PREFIX_BOUND)


async def context_policy(request: ContextPolicyRequest, _: Invocation) -> dict[str, Any]:
    """Handler of `harness::context-policy`."""
    return {"allow_prune": allows_prune(request.model)}
