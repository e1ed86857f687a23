"""Where requests go, from a base URL (siblings 8): the API, its mode, and whether it is the official host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, urlsplit, urlunsplit

OFFICIAL_HOST = "api.openai.com"
OFFICIAL_URL = f"https://{OFFICIAL_HOST}/v1"

Mode = Literal["responses", "chat"]
_PATHS: dict[str, Mode] = {"/responses": "responses", "/chat/completions": "chat"}


class BadUrl(ValueError):
    """The configured URL is no http(s) URL."""


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
    parts = _split((api_url or "").strip() or OFFICIAL_URL)
    official = parts.hostname == OFFICIAL_HOST
    base = parts.path.rstrip("/")
    mode: Mode = "responses" if official else "chat"
    for path, named in _PATHS.items():
        if base.endswith(path):
            base, mode = base.removesuffix(path), named
    if official and not base:
        base = "/v1"
    suffix = "/responses" if mode == "responses" else "/chat/completions"
    return Endpoint(_at(parts, base + suffix), _at(parts, base + "/models"), mode, official)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return parts
    except ValueError:
        pass
    raise BadUrl("the base URL of provider openai is not an http or https URL")


def _at(parts: SplitResult, path: str) -> str:
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
