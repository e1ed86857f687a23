"""The context snapshot (harness-loop 12.7) and `harness::context-policy` (harness-agents 3.13)."""

from __future__ import annotations

from pydantic import Field

from iii_contracts.harness import codes
from iii_contracts.messages import Usage
from iii_contracts.model import I64, U64, Wire
from iii_contracts.spec import FunctionSpec


class SnapshotMessagesV1(Wire):
    """Tokens of the messages by role."""

    user: U64 = Field(description="Tokens of user messages.")
    assistant: U64 = Field(description="Tokens of the model's own messages.")
    function_result: U64 = Field(description="Tokens of results.")
    custom: U64 = Field(description="Tokens of custom messages.")


class SnapshotCategoriesV1(Wire):
    """Tokens of a request by what they are spent on."""

    system_prompt: U64 = Field(description="Tokens of the system prompt without skills.")
    skills: U64 = Field(default=0, description="Tokens of the skills index.")
    tools: U64 = Field(description="Tokens of the tools.")
    messages: SnapshotMessagesV1 = Field(description="Tokens of the messages.")
    overhead: U64 = Field(description="Tokens set aside for the request around them.")
    hook_guidance: U64 = Field(default=0, description="Tokens added after assembly.")


class PrefixDivergenceV1(Wire):
    """A row of an earlier request that a later one rewrote."""

    turn_id: str = Field(description="Turn of the later request.")
    step: U64 = Field(description="Step of the later request.")
    index: U64 | None = Field(default=None, description="Position of the row.")
    prev_len: U64 | None = Field(default=None, description="Rows of the earlier request.")
    role: str | None = Field(default=None, description="Role of the row.")
    call_id: str | None = Field(default=None, description="Call that the row belongs to.")
    cause: str | None = Field(default=None, description="What rewrote it, when known.")
    provider_note: str | None = Field(default=None, description="What the provider says of it.")
    cache_read: U64 | None = Field(default=None, description="Tokens that the provider still read from its cache.")


class ContextSnapshotV1(Wire):
    """What the last request of a session was made of."""

    session_id: str = Field(description="Session of the request.")
    turn_id: str = Field(description="Turn of the request.")
    step: U64 = Field(description="Step of the request.")
    model: str = Field(description="Model that was asked.")
    provider: str | None = Field(default=None, description="Provider that was asked.")
    estimator: str | None = Field(default=None, description="How tokens were counted.")
    usable: U64 = Field(description="Input tokens that the model's window leaves.")
    effective_max_output_tokens: U64 = Field(description="Output ceiling of the request.")
    total: U64 = Field(description="Input tokens: billed ones once known, else counted.")
    free: U64 = Field(description="Usable tokens that are left.")
    categories: SnapshotCategoriesV1 = Field(description="What the tokens are spent on.")
    compacted: bool = Field(description="The request carried a summary of earlier messages.")
    summarized_head_tokens: U64 | None = Field(default=None, description="Tokens that the summary stands for.")
    usage: Usage | None = Field(default=None, description="What the provider reported.")
    session_cost_usd: float | None = Field(default=None, description="Cost of the session so far, when known.")
    prompt_surface_digest: str | None = Field(default=None, description="Digest of the stable part of the prompt.")
    prompt_sections_fallback: str | None = Field(default=None, description="Why the prompt went out unsectioned.")
    prefix_divergences: list[PrefixDivergenceV1] = Field(
        default_factory=list[PrefixDivergenceV1], description="The last rewritten rows."
    )
    timestamp: I64 = Field(description="When the snapshot was taken.")


class ContextPolicyRequest(Wire):
    """The model in question."""

    model: str = Field(description="Model id, as requests name it.")


class ContextPolicyResponse(Wire):
    """What may be done to a context for that model."""

    allow_prune: bool = Field(description="Aged results may be pruned; false where reasoning is bound to its prefix.")


CONTEXT_POLICY = FunctionSpec(
    "harness::context-policy",
    "Tell whether aged function results may be pruned from the context of a model.",
    ContextPolicyRequest,
    ContextPolicyResponse,
    codes.INVALID_REQUEST,
    codes.INTERNAL_FUNCTION,
)

FUNCTIONS = (CONTEXT_POLICY,)
