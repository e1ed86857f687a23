"""What the last request of a session was made of (harness-loop 12.7): taken when it goes out, stamped with what it
cost. Pure. A value that is not known is left out, never zero.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from iii_contracts.context import AssembleAnswer, ByRole
from iii_contracts.problems import is_object
from iii_harness.record import TurnRecord


class Context(msgspec.Struct, frozen=True):
    """The snapshot of a request that is out, and what the session had cost before it (None: not known)."""

    snapshot: dict[str, Any]
    cost_before: float | None


class Measured(msgspec.Struct, frozen=True):
    """What was measured of one request."""

    answer: AssembleAnswer
    base: int
    """Tokens of the request around messages, prompt and tools."""
    final: int
    """Tokens of the whole request."""
    added: int
    """Tokens put behind the assembled messages."""


def taken(
    record: TurnRecord,
    measured: Measured,
    *,
    summarised: bool,
    head_tokens: int | None,
    surface_digest: str | None,
    fallback: str | None,
    now_ms: int,
) -> dict[str, Any]:
    """The snapshot of a request before its answer: `summarised` when it carries a summary, of `head_tokens` tokens."""
    answer = measured.answer
    snapshot = {
        "session_id": record.session_id,
        "turn_id": record.turn_id,
        "step": record.step,
        "model": record.options.model,
        "provider": record.options.provider,
        "estimator": None if answer.breakdown is None else answer.breakdown.estimator,
        "usable": answer.usable,
        "effective_max_output_tokens": answer.effective_max_output_tokens,
        "total": measured.final,
        "free": max(0, answer.usable - measured.final),
        "categories": _categories(measured),
        "compacted": summarised,
        "summarized_head_tokens": head_tokens if summarised else None,
        "prompt_surface_digest": surface_digest,
        "prompt_sections_fallback": fallback,
        "timestamp": now_ms,
    }
    return {name: value for name, value in snapshot.items() if value is not None}


def stamped(context: Context, usage: Any) -> dict[str, Any]:
    """The snapshot once its answer is there: billed input instead of counted, and what the session has cost."""
    if not is_object(usage):
        return context.snapshot
    used = cast("dict[str, Any]", usage)
    snapshot: dict[str, Any] = {**context.snapshot, "usage": used}
    billed = used.get("input")
    if isinstance(billed, int):
        total = billed + sum(used.get(name) or 0 for name in ("cache_read", "cache_write"))
        snapshot.update(total=total, free=max(0, snapshot["usable"] - total))
    cost = used.get("cost_usd")
    if context.cost_before is not None and isinstance(cost, (int, float)):
        snapshot["session_cost_usd"] = context.cost_before + cost
    return snapshot


def cost_of(snapshot: dict[str, Any] | None) -> float | None:
    """What a session had cost when the snapshot was stored; nothing before the first one, None when not known."""
    if snapshot is None:
        return 0.0
    cost = snapshot.get("session_cost_usd")
    return cost if isinstance(cost, (int, float)) else None


def _categories(measured: Measured) -> dict[str, Any]:
    breakdown = measured.answer.breakdown
    skills = (breakdown.by_part or {}).get("skills", 0) if breakdown is not None else 0
    prompt = breakdown.system_prompt_tokens if breakdown is not None else 0
    return {
        "system_prompt": max(0, prompt - skills),
        "skills": skills,
        "tools": breakdown.tools_tokens if breakdown is not None else 0,
        "messages": _by_role(breakdown.by_role if breakdown is not None else ByRole()),
        "overhead": measured.base,
        "hook_guidance": measured.added,
    }


def _by_role(tokens: ByRole) -> dict[str, int]:
    return {
        "user": tokens.user,
        "assistant": tokens.assistant,
        "function_result": tokens.function_result,
        "custom": tokens.custom,
    }
