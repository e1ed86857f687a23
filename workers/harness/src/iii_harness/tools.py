"""The tools that one step offers (harness-loop 9A.2)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from iii_harness.catalog import Snapshot
from iii_harness.gate import CallGate
from iii_kit.logs import logger

log = logger(__name__)

AGENT_TRIGGER: Final[dict[str, Any]] = {
    "name": "agent_trigger",
    "description": "Call one function of the bus by its id and wait for its result.",
    "parameters": {
        "type": "object",
        "properties": {
            "function": {
                "type": "string",
                "description": "Exact id of the function, such as engine::functions::list.",
            },
            "description": {
                "type": "string",
                "description": "What this call is for, in a few words, shown to the user as activity. In the language "
                "that the session context names, else in the user's.",
            },
            "payload": {
                "type": "object",
                "description": "Arguments of the function as its contract has them; a JSON object, never a string.",
            },
        },
        "required": ["function"],
    },
    "execution_mode": "sequential",
}
"""The one tool through which every function is called. Never changed: it is part of the cached prefix."""


def offered(gate: CallGate, snapshot: Snapshot, dispatch_only: Collection[str]) -> list[dict[str, Any]]:
    """The tools of a step: `agent_trigger`, whatever the policy; or, in native exposure, each allowed function."""
    if gate.policy.expose == "agent_trigger":
        return [AGENT_TRIGGER]
    tools = [
        function.tool
        for function in snapshot.functions.values()
        if gate.allows(function.function_id) and function.function_id not in dispatch_only
    ]
    if not tools:
        log.warning("no_native_tools", policy=gate.policy.digest)
    return tools
