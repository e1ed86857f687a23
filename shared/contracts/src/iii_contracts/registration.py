"""How providers register with the router, report on themselves and get their key (siblings 6)."""

from typing import Literal

from pydantic import Field

from iii_contracts.generation import (
    CatalogState,
    Credential,
    CredentialState,
    Model,
    ProviderDiagnostic,
    RouterFailure,
)
from iii_contracts.model import U64, Json, Wire


class ProviderRow(Wire):
    """A registered provider."""

    id: str = Field(description="Provider id.")
    display_name: str | None = Field(default=None, description="Name for people.")
    configured: bool = Field(description="It has the key it needs, or needs none.")
    available: bool = Field(description="Its stream function was there when last seen.")
    supports_model_listing: bool = Field(description="It can discover its models.")
    diagnostic: ProviderDiagnostic | None = Field(default=None, description="How it is.")


class ProvidersAnswer(Wire):
    """The registered providers."""

    providers: list[ProviderRow] = Field(description="All of them, by id.")


class ProviderDefaults(Wire):
    """What holds where the router's configuration says nothing."""

    api_url: str | None = Field(default=None, description="Base URL.")
    max_tokens: U64 | None = Field(default=None, description="Output ceiling.")


class RegisterRequest(Wire):
    """A provider introduces itself."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", description="Provider id.")
    display_name: str | None = Field(default=None, description="Name for people.")
    credential_env_var: str | None = Field(default=None, description="Variable that holds its key; it needs one.")
    defaults: ProviderDefaults | None = Field(default=None, description="Defaults of its settings.")
    config_schema: Json = Field(default=None, description="JSON schema of its settings.")
    supports_model_listing: bool | None = Field(default=None, description="It can discover its models.")
    models: list[Model] | None = Field(default=None, description="Its models, when it knows them already.")
    system_prompt: str | None = Field(default=None, description="Its own system prompt.")
    worker_id: str | None = Field(default=None, description="Worker that serves it.")
    token: str | None = Field(default=None, description="Token of an earlier registration.")


class RegisterAnswer(Wire):
    """A registration."""

    ok: bool = Field(description="True.")
    id: str = Field(description="Provider id.")
    registration_token: str = Field(description="To be shown with every later call for this id.")


class ProviderKey(Wire):
    """A provider and its token."""

    id: str = Field(description="Provider id.")
    token: str | None = Field(default=None, description="Token of its registration.")


class Done(Wire):
    """It is done."""

    ok: bool = Field(description="True.")


class ResolveAnswer(Wire):
    """Key and endpoint of a provider."""

    configured: bool = Field(description="It has the key it needs, or needs none.")
    source: Literal["config", "env", "none"] = Field(description="Where the key comes from.")
    credential: Credential | None = Field(description="The key, or null.")
    api_url: str | None = Field(default=None, description="Base URL.")
    max_tokens: U64 | None = Field(default=None, description="Configured output ceiling.")


class UpdateCredentialRequest(ProviderKey):
    """A refreshed credential."""

    credential: Credential = Field(description="What to keep in the router's configuration.")


class StatusRequest(ProviderKey):
    """A provider's report on itself; what is absent stays as it was."""

    catalog_state: CatalogState | None = Field(default=None, description="State of its model list.")
    credential_state: CredentialState | None = Field(default=None, description="State of its key.")
    failure: RouterFailure | None = Field(default=None, description="What it met.")
    clear_failure: bool = Field(default=False, description="Forget the last failure.")


class StatusAnswer(Wire):
    """The report as kept."""

    ok: bool = Field(description="True.")
    diagnostic: ProviderDiagnostic = Field(description="How the provider is.")


class SystemPromptRequest(Wire):
    """Whose system prompt."""

    provider: str | None = Field(default=None, description="Provider id; the default provider when absent.")


class SystemPromptAnswer(Wire):
    """A configured system prompt."""

    provider: str | None = Field(default=None, description="Provider id.")
    system_prompt: str | None = Field(default=None, description="The prompt.")
