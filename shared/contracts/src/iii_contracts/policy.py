"""Function policies (harness-loop 9A, harness-agents 2) and the policy of a chat (design, "Decided interfaces")."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from iii_contracts.model import Wire


class FunctionPolicy(Wire):
    """Which functions a session may call: some `allow` glob matches and no `deny` glob does. Empty denies all."""

    allow: list[str] = Field(default_factory=list, description="Globs of ids that may be called.")
    deny: list[str] = Field(default_factory=list, description="Globs of ids that may not be called; they win.")
    expose: Literal["agent_trigger", "native"] = Field(
        default="agent_trigger", description="One generic tool, or one tool per allowed function."
    )
