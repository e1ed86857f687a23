"""Calls that no agent may make, whatever its policy says (harness-loop 9A.3, harness-agents 2.6).

Checked at the policy step and once more on the final arguments. Functions of parts that this version does not serve
are walls as well: a raw trigger binding would run past every policy, and a turn that sends to, stops or spawns
sessions needs the interceptions that keep it inside its own tree.
"""

from __future__ import annotations

from typing import Any, Final, cast

REFUSED_PREFIXES: Final = (
    "harness::delete-session-tree",
    "harness::filesystem::",
    "harness::function::",
    "harness::on-",
    "harness::projects::",
    "harness::state::",
    "provider::openai-codex::login::",
    "provider::openai-codex::auth::",
    "provider-openai-codex::state::",
)
"""Beginnings of ids that agents are never given."""

REFUSED_IDS: Final = frozenset(
    {
        "harness::edit_queued",
        "harness::sweep-pending",
        "harness::teardown",
        "harness::trigger::deliver",
        "harness::turn",
        "harness::unqueue",
        "state::claim-namespace",
    }
)
"""Ids that agents are never given."""

UNSERVED_IDS: Final = frozenset(
    {
        "engine::register_trigger",
        "engine::unregister_trigger",
        "harness::ask",
        "harness::send",
        "harness::spawn",
        "harness::stop",
    }
)
"""Ids that agents will be given through the harness's own handling, and not before it exists."""

OWN_SCOPES: Final = "harness_"
"""How the scopes of the harness's own state begin."""

STAMP: Final = "fs_scope"
"""Argument that only the harness may set: it says where file functions may work."""


def refuses(function_id: str) -> bool:
    """True when no arguments could make this id callable."""
    return function_id in REFUSED_IDS or function_id in UNSERVED_IDS or function_id.startswith(REFUSED_PREFIXES)


def refusal(function_id: str, arguments: Any) -> str | None:
    """Why this call is refused whatever the policy says, as the end of a sentence; None when no wall is in its way."""
    if function_id in UNSERVED_IDS:
        return "this version of the harness does not let agents call it"
    if refuses(function_id):
        return "it is internal and never callable by an agent"
    if function_id.startswith("state::") and _names_own_scope(arguments):
        return f"state scopes that start with `{OWN_SCOPES}` belong to the harness"
    return None


def without_stamp(arguments: Any) -> Any:
    """The arguments as they may leave: without a filesystem scope that the model made up."""
    if isinstance(arguments, dict) and STAMP in arguments:
        return {key: value for key, value in cast("dict[str, Any]", arguments).items() if key != STAMP}
    return cast("Any", arguments)


def _names_own_scope(arguments: Any) -> bool:
    scope: Any = cast("dict[str, Any]", arguments).get("scope") if isinstance(arguments, dict) else None
    return isinstance(scope, str) and scope.startswith(OWN_SCOPES)
