"""Configuration entry `llm-router` (siblings 5.8): its schema, its defaults and its reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from iii_kit.clients.configuration import Entry

ENTRY_ID = "llm-router"


class ProviderSettings(msgspec.Struct, frozen=True):
    """What an operator set for one provider."""

    api_key: str | None = None
    api_url: str | None = None
    max_tokens: int | None = None
    system_prompt: str | None = None
    credential: dict[str, Any] | None = None

    @property
    def key(self) -> str:
        """The key, trimmed; empty when there is none."""
        return (self.api_key or "").strip()


class Heuristic(msgspec.Struct, frozen=True):
    """Models whose id matches `pattern` go to `provider`."""

    pattern: str
    provider: str


class Limits(msgspec.Struct, frozen=True):
    """Time-outs and retries of a stream, and the default output budget."""

    stream_timeout_ms: int = 300_000
    idle_timeout_ms: int = 120_000
    retry_max: int = 2
    output_token_max: int = 32_000


class RouterSettings(msgspec.Struct, frozen=True):
    """The whole entry."""

    default_provider: str | None = None
    providers: dict[str, ProviderSettings] = {}
    routing_heuristics: list[Heuristic] = []
    settings: Limits = Limits()

    def provider(self, provider_id: str) -> ProviderSettings:
        """The settings of one provider, all absent when it has none."""
        return self.providers.get(provider_id, _NO_SETTINGS)


_NO_SETTINGS = ProviderSettings()
_TEXT = {"type": ["string", "null"]}
_COUNT = {"type": "integer", "minimum": 0}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "default_provider": {**_TEXT, "description": "Provider of models that nothing else routes."},
        "providers": {
            "type": "object",
            "description": "Settings by provider id.",
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "api_key": {**_TEXT, "description": "Key; may be a reference such as ${OPENAI_API_KEY:}."},
                    "api_url": {**_TEXT, "description": "Base URL."},
                    "max_tokens": {"type": ["integer", "null"], "minimum": 1, "description": "Output ceiling."},
                    "system_prompt": {**_TEXT, "description": "System prompt of this provider."},
                    "credential": {"type": ["object", "null"], "description": "OAuth credential kept by a provider."},
                },
            },
        },
        "routing_heuristics": {
            "type": "array",
            "description": "Globs on model ids, tried in order.",
            "items": {
                "type": "object",
                "properties": {"pattern": {"type": "string"}, "provider": {"type": "string"}},
                "required": ["pattern", "provider"],
            },
        },
        "settings": {
            "type": "object",
            "properties": {
                "stream_timeout_ms": {**_COUNT, "description": "Whole time of a generation with its retries."},
                "idle_timeout_ms": {**_COUNT, "description": "Longest silence of a provider."},
                "retry_max": {**_COUNT, "description": "Retries before anything was streamed."},
                "output_token_max": {**_COUNT, "description": "Output budget when nobody asks for one."},
            },
        },
    },
}

ENTRY = Entry(
    id=ENTRY_ID,
    name="Model router",
    description="Providers of models, routing, and the limits of a generation.",
    schema=_SCHEMA,
    initial={"providers": {}, "routing_heuristics": [], "settings": msgspec.to_builtins(Limits())},
)


def read_settings(value: Any) -> RouterSettings:
    """The settings of a stored value; null counts as absent. Raises `msgspec.ValidationError`."""
    return msgspec.convert(_without_null(value if isinstance(value, Mapping) else {}), RouterSettings)


def _without_null(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _without_null(item) for key, item in value.items() if item is not None}  # pyright: ignore
    return value
