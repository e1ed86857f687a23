"""Function policies (harness-loop 9A, harness-agents 2) and the policy of a chat (design, "Decided interfaces")."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from iii_contracts.model import Wire


class FunctionPolicy(Wire):
    """Which functions a session may call: some `allow` glob matches and no `deny` glob does. Empty denies all."""

    allow: list[str] = Field(default=[], description="Globs of ids that may be called.")
    deny: list[str] = Field(default=[], description="Globs of ids that may not be called; they win.")
    expose: Literal["agent_trigger", "native"] = Field(
        default="agent_trigger", description="One generic tool, or one tool per allowed function."
    )


PLATFORM = (
    "approval::*", "compose::*", "configuration::*", "console::*", "context::*", "eval::*", "harness::*", "iii::*",
    "provider::*", "publish", "queue::*", "router::*", "session::*", "state::*", "worker::*",
)  # fmt: skip
"""Functions of the platform itself: a conversation has no business with them."""

ENGINE = (
    "engine::alerts::evaluate", "engine::baggage::*", "engine::channels::*", "engine::health::*", "engine::log::*",
    "engine::logs::clear", "engine::queue::*", "engine::register_trigger", "engine::sampling::*",
    "engine::traces::clear", "engine::traces::group_by", "engine::traces::tree", "engine::unregister_trigger",
    "engine::workers::register",
)  # fmt: skip
"""Functions of the engine that are neither a list nor an info. Bindings stay closed until they pass the policy too."""

# Not validated: that would build the model at every start, and a test holds that it is valid.
CHAT_POLICY = FunctionPolicy.model_construct(allow=["*"], deny=sorted([*PLATFORM, *ENGINE]), expose="agent_trigger")
"""What a chat sends: everything that workers offer, and of the platform only looking around."""
