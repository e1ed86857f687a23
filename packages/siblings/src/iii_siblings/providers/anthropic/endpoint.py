"""Where requests go, from a base URL with or without `/v1` or `/v1/messages` (siblings 7)."""

from __future__ import annotations

from dataclasses import dataclass

from iii_siblings.providers.urls import at, split

OFFICIAL_HOST = "api.anthropic.com"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The URLs of one server."""

    url: str
    models_url: str
    official: bool

    @property
    def needs_key(self) -> bool:
        """Only the official host insists on a key; any other may want none."""
        return self.official


def endpoint(api_url: str | None) -> Endpoint:
    """The endpoint of a base URL, or of the official host when there is none. Raises `BadUrl`."""
    parts = split((api_url or "").strip() or f"https://{OFFICIAL_HOST}")
    base = parts.path.rstrip("/").removesuffix("/messages")
    if not base.endswith("/v1"):
        base += "/v1"
    models = at(parts, base + "/models", "limit=1000")
    return Endpoint(at(parts, base + "/messages"), models, parts.hostname == OFFICIAL_HOST)
