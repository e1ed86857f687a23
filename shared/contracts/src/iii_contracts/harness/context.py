"""The context snapshot (harness-loop 12.7) and `harness::context-policy` (harness-agents 3.13)."""

from pydantic import Field

from iii_contracts import session_metrics
from iii_contracts.harness import codes
from iii_contracts.model import U64, Wire
from iii_contracts.spec import FunctionSpec


class SnapshotCategoriesV1(session_metrics.SnapshotCategoriesV1):
    """Tokens of a request by what they are spent on."""

    skills: U64 = Field(default=0, description="Tokens of the skills index.")


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


class ContextSnapshotV1(session_metrics.ContextSnapshotV1):
    """What the last request of a session was made of."""

    # Narrower than what readers rely on, which is sound: models are frozen.
    categories: SnapshotCategoriesV1 = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        description="What the tokens are spent on."
    )
    prompt_surface_digest: str | None = Field(default=None, description="Digest of the stable part of the prompt.")
    prompt_sections_fallback: str | None = Field(default=None, description="Why the prompt went out unsectioned.")
    prefix_divergences: list[PrefixDivergenceV1] = Field(
        default_factory=list[PrefixDivergenceV1], description="The last rewritten rows."
    )


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
