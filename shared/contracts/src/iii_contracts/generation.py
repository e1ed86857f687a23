"""What a generation is made of: models of the catalogue, tools, prompts, errors (siblings 2.3, 2.4, 5.2)."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, SkipValidation

from iii_contracts.messages import AgentMessage, ErrorKind, ThinkingLevel
from iii_contracts.model import I64, U64, Json, Wire
from iii_contracts.spec import CALLER, FunctionSpec

CatalogState = Literal["unknown", "discovering", "ready", "empty", "error"]
CredentialState = Literal["unknown", "ready", "missing", "external"]
Messages = list[Annotated[AgentMessage, SkipValidation]]
"""A transcript whose messages the callee checks itself: it may be long and is mostly passed on."""


class HandCheckedSpec(FunctionSpec):
    """A function that checks its request itself, because a refusal has to reach the caller's channel too."""

    def parse(self, data: Any) -> tuple[Any, str | None]:
        """The raw request, without the caller's id."""
        if isinstance(data, dict):
            data.pop(CALLER, None)  # pyright: ignore[reportUnknownMemberType]
        return data, None  # pyright: ignore[reportUnknownVariableType]

    def check(self, data: Any) -> str | None:
        """What is wrong with a request, or None."""
        return super().parse(data)[1]


class PassedOnSpec(HandCheckedSpec):
    """A function that hands the transcript on, whose shape alone it looks at."""

    undecoded = ("messages",)


class Tool(Wire):
    """A function as a model is offered it."""

    name: str = Field(description="Name that the model calls.")
    description: str = Field(description="What it does, for the model.")
    parameters: Json = Field(description="JSON schema of the arguments.")
    label: str | None = Field(default=None, description="Short name for people.")
    execution_mode: Literal["parallel", "sequential"] | None = Field(
        default=None, description="Whether calls of one answer may run at the same time."
    )


class PromptSection(Wire):
    """A part of the system prompt; all parts joined with a blank line are the flat prompt, byte for byte."""

    text: str = Field(description="The text of the part.")
    cache_boundary: bool = Field(default=False, description="True where a provider may end a cached prefix.")


class PromptCacheIntent(Wire):
    """What a provider may derive a cache key from."""

    surface_digest: str = Field(description="`sha256:` and 64 hex digits of the stable prefix.")


class ResponseFormat(Wire):
    """The form that the answer must have."""

    type: Literal["json"] = Field(description="Always `json`.")
    schema_: Json = Field(default=None, alias="schema", description="JSON schema of the answer.")


class Credential(Wire):
    """A key or an OAuth token."""

    type: Literal["api_key", "oauth"] = Field(description="Which of the two it is.")
    key: str | None = Field(default=None, description="The key.")
    access_token: str | None = Field(default=None, description="OAuth access token.")
    refresh_token: str | None = Field(default=None, description="OAuth refresh token.")
    expires_at: I64 | None = Field(default=None, description="When the access token ends.")
    scopes: list[str] | None = Field(default=None, description="What the token allows.")
    provider_extra: Json = Field(default=None, description="What else the provider keeps with it.")


class Effort(Wire):
    """One step of a model's reasoning ladder."""

    effort: str = Field(description="Name of the step at the provider.")
    description: str | None = Field(default=None, description="What it is for.")


class Pricing(Wire):
    """USD per million tokens; a rate that is not known is absent."""

    input: float | None = Field(default=None, description="Input tokens that were not cached.")
    output: float | None = Field(default=None, description="Output tokens.")
    cache_read: float | None = Field(default=None, description="Input tokens read from the cache.")
    cache_write: float | None = Field(default=None, description="Input tokens written to the cache.")


class Speech(Wire):
    """What a speech model does."""

    modality: Literal["stt", "tts"] = Field(description="Speech to text, or text to speech.")
    languages: list[str] | None = Field(default=None, description="Language codes.")
    streaming: bool | None = Field(default=None, description="True when it streams.")


class Model(Wire):
    """An entry of the catalogue. A capability that is not stated counts as absent for a known model."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    id: str = Field(min_length=1, description="The provider's own model id.")
    provider: str = Field(description="Provider id.")
    context_window: U64 = Field(description="Tokens of input and output together.")
    max_output_tokens: U64 = Field(description="Ceiling of the output.")
    display_name: str | None = Field(default=None, description="Name for people.")
    input_limit: U64 | None = Field(default=None, description="Input budget when it is not window minus output.")
    supports_thinking: bool | None = Field(default=None, description="It can reason.")
    supports_xhigh: bool | None = Field(default=None, description="It knows the highest effort.")
    supports_thinking_off: bool | None = Field(default=None, description="Its reasoning can be switched off.")
    reasoning_efforts: list[Effort] | None = Field(default=None, description="Reasoning ladder, lowest first.")
    supports_tools: bool | None = Field(default=None, description="It can call functions.")
    supports_vision: bool | None = Field(default=None, description="It can see images.")
    supports_cache: bool | None = Field(default=None, description="Its provider caches prefixes.")
    supports_structured_output: bool | None = Field(default=None, description="It keeps to a JSON schema.")
    thinking_budgets: dict[str, U64] | None = Field(default=None, description="Tokens reserved per thinking level.")
    pricing: Pricing | None = Field(default=None, description="Rates; absent means unknown.")
    speech: Speech | None = Field(default=None, description="Set on speech models alone.")


class RouterFailure(Wire):
    """What a provider met last."""

    code: str = Field(description="Error code.")
    kind: ErrorKind = Field(description="Error kind.")
    message: str = Field(description="Public text.")
    retryable: bool = Field(description="The same request may succeed.")
    attempts: U64 = Field(description="Tries that were made.")
    model: str | None = Field(default=None, description="Model asked for.")
    provider: str | None = Field(default=None, description="Provider asked.")


class ProviderDiagnostic(Wire):
    """How a provider is."""

    catalog_state: CatalogState = Field(description="State of its model list.")
    credential_state: CredentialState = Field(description="State of its key.")
    stale: bool = Field(description="True when it has not reported since it registered or lost its function.")
    updated_at: U64 = Field(description="Time of the last report.")
    last_failure: RouterFailure | None = Field(default=None, description="Last failure that was not cleared.")


class Generation(Wire):
    """What every request for a generation may say, at the router and at a provider."""

    model: str = Field(description="Model id.")
    messages: Messages = Field(description="The transcript.")
    session_id: str | None = Field(default=None, description="Cache affinity alone.")
    system_prompt: str | None = Field(default=None, description="The system prompt, flat.")
    system_sections: list[PromptSection] | None = Field(
        default=None, description="The same prompt in parts; ignored when they do not join to it."
    )
    cache_intent: PromptCacheIntent | None = Field(default=None, description="Source of a cache key.")
    tools: list[Tool] | None = Field(default=None, description="Functions offered.")
    response_format: ResponseFormat | None = Field(default=None, description="Form of the answer.")
    thinking_level: ThinkingLevel | None = Field(default=None, description="How hard to reason.")
    max_output_tokens: U64 | None = Field(default=None, description="Ceiling for this answer.")


class Nothing(Wire):
    """A request without settings."""
