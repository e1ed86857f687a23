"""Where requests go, from a base URL (siblings 8): the API, its mode, and whether it is the official host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from iii_siblings.providers.urls import at, split

OFFICIAL_HOST = "api.openai.com"
OFFICIAL_URL = f"https://{OFFICIAL_HOST}/v1"

Mode = Literal["responses", "chat"]
_PATHS: dict[str, Mode] = {"/responses": "responses", "/chat/completions": "chat"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The URLs of one API."""

    url: str
    models_url: str
    mode: Mode
    official: bool

    @property
    def needs_key(self) -> bool:
        """Only the official host insists on a key; any other may want none."""
        return self.official


def endpoint(api_url: str | None) -> Endpoint:
    """The endpoint of a base URL, or of the official host when there is none. Raises `BadUrl`."""
    parts = split((api_url or "").strip() or OFFICIAL_URL)
    official = parts.hostname == OFFICIAL_HOST
    base = parts.path.rstrip("/")
    mode: Mode = "responses" if official else "chat"
    for path, named in _PATHS.items():
        if base.endswith(path):
            base, mode = base.removesuffix(path), named
    if official and not base:
        base = "/v1"
    suffix = "/responses" if mode == "responses" else "/chat/completions"
    return Endpoint(at(parts, base + suffix), at(parts, base + "/models"), mode, official)
