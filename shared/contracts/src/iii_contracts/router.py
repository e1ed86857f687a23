"""The model router: streaming generations, catalogue, providers, its events and configuration (siblings 5, 6)."""

from typing import Any, Literal

from pydantic import Field

from iii_contracts.generation import Generation, Messages, Model, Nothing, PassedOnSpec, Tool
from iii_contracts.messages import AssistantMessage, ErrorKind, StopReason, Usage
from iii_contracts.model import U64, Closed, Json, Wire
from iii_contracts.provider import AbortAnswer, AbortRequest
from iii_contracts.registration import (
    Done,
    ProviderKey,
    ProvidersAnswer,
    RegisterAnswer,
    RegisterRequest,
    ResolveAnswer,
    StatusAnswer,
    StatusRequest,
    SystemPromptAnswer,
    SystemPromptRequest,
    UpdateCredentialRequest,
)
from iii_contracts.spec import FunctionSpec, TriggerSpec

INVALID = "router/invalid_request"
UNKNOWN_PROVIDER = "router/unknown_provider"
NO_PROVIDER = "router/no_provider_for_model"
AMBIGUOUS = "router/ambiguous_model"
UNAVAILABLE = "router/provider_unavailable"
NOT_CONFIGURED = "router/not_configured"
STRUCTURED_UNSUPPORTED = "router/structured_output_unsupported"
IN_PROGRESS = "router/request_in_progress"
CAPACITY = "router/capacity_exceeded"
SETUP_FAILED = "router/stream_setup_failed"
IDLE = "router/stream_idle_timeout"
INCOMPLETE = "router/stream_incomplete"
REJECTED = "router/registration_rejected"

CODE_OF_KIND: dict[str, str] = {
    "auth_expired": "router/provider_auth_expired",
    "rate_limited": "router/provider_rate_limited",
    "context_overflow": "router/context_overflow",
    "transient": "router/provider_transient",
    "permanent": "router/provider_rejected",
}
"""The response code of a provider's error frame, by its kind."""

BEFORE_STREAMING = (
    INVALID,
    UNKNOWN_PROVIDER,
    NO_PROVIDER,
    AMBIGUOUS,
    UNAVAILABLE,
    NOT_CONFIGURED,
    STRUCTURED_UNSUPPORTED,
    IN_PROGRESS,
    CAPACITY,
)
"""Codes of a request that is refused before anything streams."""


class CompleteRequest(Generation):
    """One generation, answered as a whole."""

    request_id: str | None = Field(default=None, description="Key of an abort; made up when absent.")
    provider: str | None = Field(default=None, description="Provider to use, whatever the catalogue says.")
    provider_options: dict[str, dict[str, Json]] | None = Field(
        default=None, description="Options by provider id; only those of the routed provider are passed on."
    )
    metadata: dict[str, Json] | None = Field(default=None, description="Kept apart; means nothing here.")


class ChatRequest(CompleteRequest):
    """One generation, streamed."""

    writer_ref: Json = Field(description="Write end of the caller's channel.")


class ChatError(Wire):
    """Why a stream ended in an error."""

    code: str = Field(description="Router code.")
    message: str = Field(description="Public text.")
    detail: Json = Field(default=None, description="`retry_after_ms` where the provider named a wait.")
    kind: ErrorKind | None = Field(default=None, description="Error kind.")
    retryable: bool | None = Field(default=None, description="The same request may succeed.")


class ChatAnswer(Wire):
    """How a stream ended."""

    ok: bool = Field(description="False when it ended in an error.")
    provider: str = Field(description="Provider that was used.")
    model: str = Field(description="Model that was used.")
    stop_reason: StopReason | None = Field(default=None, description="Why the model stopped.")
    usage: Usage | None = Field(default=None, description="Tokens and cost.")
    error: ChatError | None = Field(default=None, description="The error.")


class CompleteAnswer(Wire):
    """A whole answer."""

    message: AssistantMessage = Field(description="The answer.")
    provider: str = Field(description="Provider that was used.")
    model: str = Field(description="Model that was used.")
    usage: Usage | None = Field(default=None, description="Tokens and cost.")


class RouteRequest(Wire):
    """Which provider would serve a model."""

    model: str = Field(description="Model id.")
    provider: str | None = Field(default=None, description="Provider asked for.")


class RouteAnswer(Wire):
    """The routing of a model."""

    provider: str = Field(description="Provider that serves it.")
    candidates: list[str] = Field(description="Providers that list the model.")


class ModelsFilter(Wire):
    """Which catalogue entries to list."""

    provider: str | None = Field(default=None, description="Only this provider's.")
    capability: str | None = Field(default=None, description="Only models with this capability.")
    modality: Literal["chat", "stt", "tts", "any"] = Field(default="chat", description="Kind of model.")


class ModelsAnswer(Wire):
    """Catalogue entries."""

    models: list[Model] = Field(description="The entries, by provider, in its own order.")


class ModelKey(Wire):
    """One catalogue entry."""

    provider: str = Field(description="Provider id.")
    id: str = Field(description="Model id.")


class ModelAnswer(Wire):
    """One catalogue entry."""

    model: Model = Field(description="The entry.")


class SupportsRequest(ModelKey):
    """A question about a capability."""

    capability: str = Field(description="`tools`, `vision`, `cache`, `structured_output`, `thinking[:level]`.")


class SupportsAnswer(Wire):
    """The answer about a capability."""

    supported: bool = Field(description="False for unknown models and capabilities.")


class BudgetRequest(ModelKey):
    """A question about the output budget."""

    max_output_tokens: U64 | None = Field(default=None, description="What the caller would ask for.")


class BudgetAnswer(Wire):
    """The output budget."""

    model: Model | None = Field(description="The entry; null when the catalogue does not know it.")
    effective_max_output_tokens: U64 = Field(description="What a request would be given.")


class ReconcileRequest(Wire):
    """A provider's whole slice of the catalogue."""

    provider: str = Field(description="Provider id.")
    models: list[Model] = Field(description="Its models; replaces what was known.")
    token: str | None = Field(default=None, description="Token of its registration.")


class ReconcileAnswer(Wire):
    """A slice was replaced."""

    provider: str = Field(description="Provider id.")
    count: U64 = Field(description="Models it has now.")


class CountRequest(Wire):
    """A request whose tokens are counted."""

    messages: Messages = Field(description="The transcript.")
    model: str | None = Field(default=None, description="Model id.")
    provider: str | None = Field(default=None, description="Provider id.")
    system_prompt: str | None = Field(default=None, description="System prompt.")
    tools: list[Tool] | None = Field(default=None, description="Functions offered.")


class CountAnswer(Wire):
    """A count of tokens."""

    tokens: U64 = Field(description="Input tokens.")
    estimator: Literal["provider", "tiktoken"] = Field(description="`tiktoken` when it was estimated here.")
    provider: str | None = Field(default=None, description="Provider of the model.")
    model: str | None = Field(default=None, description="Model id.")


class NoConfig(Closed):
    """No settings."""


class ReadyEvent(Wire):
    """The router works; providers register again."""


class ModelsChanged(Wire):
    """A provider's slice of the catalogue changed."""

    provider: str = Field(description="Provider id.")
    count: U64 = Field(description="Models it has now.")


class ProviderChanged(Wire):
    """A provider changed state."""

    provider: str = Field(description="Provider id.")
    op: Literal["register", "available", "unavailable"] = Field(description="What happened.")


def _spec(name: str, says: str, request: Any, response: Any, *errors: str, **metadata: Any) -> FunctionSpec:
    return FunctionSpec(
        f"router::{name}", says, request, response, INVALID, {"embedded": True, **metadata}, (INVALID, *errors)
    )


CHAT = PassedOnSpec(
    "router::chat",
    "Streams one generation into the caller's channel and answers when it has ended.",
    ChatRequest,
    ChatAnswer,
    INVALID,
    {"embedded": True},
    (*BEFORE_STREAMING, SETUP_FAILED, IDLE, INCOMPLETE, *CODE_OF_KIND.values()),
)
COMPLETE = PassedOnSpec(
    "router::complete",
    "One generation, answered as a whole.",
    CompleteRequest,
    CompleteAnswer,
    INVALID,
    {"embedded": True},
    BEFORE_STREAMING,
)
ABORT = _spec("abort", "Stops a running generation; its stream ends with what there is.", AbortRequest, AbortAnswer)
ROUTE = _spec(
    "route",
    "Says which provider would serve a model.",
    RouteRequest,
    RouteAnswer,
    UNKNOWN_PROVIDER,
    NO_PROVIDER,
    AMBIGUOUS,
)
MODELS_LIST = _spec("models::list", "Lists the models of the catalogue.", ModelsFilter, ModelsAnswer)
MODELS_GET = _spec("models::get", "One model of the catalogue, or null.", ModelKey, ModelAnswer | None)
MODELS_SUPPORTS = _spec("models::supports", "Tells whether a model has a capability.", SupportsRequest, SupportsAnswer)
MODELS_BUDGET = _spec("models::budget", "A model's limits and its output budget.", BudgetRequest, BudgetAnswer)
MODELS_RECONCILE = _spec(
    "models::reconcile",
    "Replaces one provider's slice of the catalogue.",
    ReconcileRequest,
    ReconcileAnswer,
    REJECTED,
    UNKNOWN_PROVIDER,
    internal=True,
)
COUNT_TOKENS = _spec(
    "count_tokens", "Counts input tokens, at the provider or by an estimate.", CountRequest, CountAnswer
)
PROVIDER_LIST = _spec("provider::list", "Lists the registered providers.", Nothing, ProvidersAnswer)
PROVIDER_REGISTER = _spec(
    "provider::register",
    "Registers a provider, or renews it.",
    RegisterRequest,
    RegisterAnswer,
    REJECTED,
    internal=True,
)
PROVIDER_UNREGISTER = _spec(
    "provider::unregister", "Removes a provider and its models.", ProviderKey, Done, REJECTED, internal=True
)
PROVIDER_RESOLVE = _spec(
    "provider::resolve",
    "Key and endpoint of a provider.",
    ProviderKey,
    ResolveAnswer,
    REJECTED,
    UNKNOWN_PROVIDER,
    internal=True,
    trace_hidden=True,
)
PROVIDER_UPDATE_CREDENTIAL = _spec(
    "provider::update_credential",
    "Keeps a refreshed credential in the router's configuration.",
    UpdateCredentialRequest,
    Done,
    REJECTED,
    UNKNOWN_PROVIDER,
    internal=True,
    trace_hidden=True,
)
PROVIDER_STATUS = _spec(
    "provider::status",
    "A provider's report on itself.",
    StatusRequest,
    StatusAnswer,
    REJECTED,
    UNKNOWN_PROVIDER,
    internal=True,
)
SYSTEM_PROMPT_GET = _spec(
    "system_prompt::get",
    "The system prompt that a provider was given.",
    SystemPromptRequest,
    SystemPromptAnswer,
)
ON_CONFIG_CHANGE = _spec("on-config-change", "Reads the router's configuration entry again.", None, Done, internal=True)

READY = TriggerSpec("router::ready", "The router works; providers register again.", NoConfig, ReadyEvent)
MODELS_CHANGED = TriggerSpec(
    "router::models::changed", "A provider's slice of the catalogue changed.", NoConfig, ModelsChanged
)
PROVIDER_CHANGED = TriggerSpec("router::provider::changed", "A provider changed state.", NoConfig, ProviderChanged)

FUNCTIONS: tuple[FunctionSpec, ...] = (
    CHAT,
    COMPLETE,
    ABORT,
    ROUTE,
    MODELS_LIST,
    MODELS_GET,
    MODELS_SUPPORTS,
    MODELS_BUDGET,
    MODELS_RECONCILE,
    COUNT_TOKENS,
    PROVIDER_LIST,
    PROVIDER_REGISTER,
    PROVIDER_UNREGISTER,
    PROVIDER_RESOLVE,
    PROVIDER_UPDATE_CREDENTIAL,
    PROVIDER_STATUS,
    SYSTEM_PROMPT_GET,
    ON_CONFIG_CHANGE,
)
TRIGGERS: tuple[TriggerSpec, ...] = (READY, MODELS_CHANGED, PROVIDER_CHANGED)
