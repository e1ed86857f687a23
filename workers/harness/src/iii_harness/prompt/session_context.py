"""The runtime context block of a prompt and its policy aid (harness-agents 3.6, 3.8).

The block is an aid: enforcement is at dispatch. It is frozen on a session's first step; what changes later is told
in a notice.
"""

from __future__ import annotations

from typing import Final

from iii_harness.policy import CompiledPolicy
from iii_harness.record import Options
from iii_harness.working_directory import root_of

AID_GLOBS: Final = 30
"""Allowed globs that the aid lists."""

NO_CALLS: Final = (
    "Function dispatch is disabled in this session: no function may be called, and any call will be denied. "
    "Answer from the conversation alone."
)


def session_context(session_id: str, options: Options, policy: CompiledPolicy) -> str:
    """The block as it is now."""
    lines = [f"Your session id is {session_id}."]
    root = root_of(options.metadata)
    if root is not None:
        lines.append(f"Your working directory is {root}.")
    aid = policy_aid(policy)
    if aid is not None:
        lines.append(aid)
    return "\n".join(lines)


def policy_aid(policy: CompiledPolicy) -> str | None:
    """What the model should know of its policy; None when the policy is not narrowed."""
    if policy.denies_all:
        return NO_CALLS
    if policy.allows_all:
        return None
    return (
        f"In this session you may call only functions that match: {listed(policy.allow)}."
        f"{f' Of these, functions that match {listed(policy.deny)} are denied.' if policy.deny else ''} "
        "This list overrides the general rule to discover functions first: call a listed id directly when the task "
        "already gives its arguments. Anything else is denied, discovery included unless it is listed. Do not probe; "
        "when the task needs a function outside the list, report that as the blocker and finish."
    )


def listed(globs: tuple[str, ...]) -> str:
    """Globs for the model: sorted, each once, at most 30."""
    unique = sorted(set(globs))
    return ", ".join(unique[:AID_GLOBS]) + (", …" if len(unique) > AID_GLOBS else "")
