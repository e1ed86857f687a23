"""Keys and retention of the prompt cache (siblings 8)."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from typing import Any

from iii_siblings.providers.openai.endpoint import Endpoint
from iii_siblings.providers.openai.reasoning import version_of
from iii_siblings.providers.payload import field

RETENTION_VARIABLE = "PROVIDER_OPENAI_CACHE_RETENTION"
MAX_BREAKPOINTS = 3


def cache_key(request: dict[str, Any], endpoint: Endpoint) -> str | None:
    """The key of a request: given, else derived; a derived one is for the official host alone."""
    given = field(request, "provider_options", "prompt_cache_key")
    if isinstance(given, str) and given:
        return given
    source = field(request, "cache_intent", "surface_digest") or request.get("session_id")
    return derived_key(source) if endpoint.official and isinstance(source, str) and source else None


def derived_key(text: str) -> str:
    """The first 16 bytes of the SHA-256 of `text`, as a UUID of version 4."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def retention(model: str, endpoint: Endpoint, environ: Mapping[str, str]) -> str | None:
    """How long a cached prefix is to be kept, for models that know the parameter."""
    chosen = environ.get(RETENTION_VARIABLE, "").strip() or "24h"
    version = version_of(model)
    if not endpoint.official or version is None or version < (5, 1) or chosen not in ("24h", "in_memory"):
        return None
    return chosen


def marked_sections(request: dict[str, Any], endpoint: Endpoint) -> list[tuple[str, bool]] | None:
    """The system prompt in parts, each with whether a cached prefix may end behind it; None to send it flat."""
    version = version_of(request["model"])
    sections: list[dict[str, Any]] = request.get("system_sections") or []
    if not sections or not endpoint.official or version is None or version < (5, 6):
        return None
    marked: list[tuple[str, bool]] = []
    for section in sections:
        used = sum(mark for _, mark in marked)
        marked.append((section["text"], bool(section.get("cache_boundary")) and used < MAX_BREAKPOINTS))
    return marked
