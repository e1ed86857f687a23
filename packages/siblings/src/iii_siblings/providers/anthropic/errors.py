"""Kinds of the API's errors (siblings 7)."""

from __future__ import annotations

from typing import Any

from iii_contracts.messages import ErrorKind
from iii_siblings.providers.payload import field

_KINDS: dict[str, ErrorKind] = {
    "authentication_error": "auth_expired",
    "permission_error": "auth_expired",
    "rate_limit_error": "rate_limited",
    "overloaded_error": "transient",
    "api_error": "transient",
    "timeout_error": "transient",
    "request_too_large": "context_overflow",
    "exceed_context_size_error": "context_overflow",
}
_STATUSES: dict[int, ErrorKind] = {
    401: "auth_expired",
    403: "auth_expired",
    413: "context_overflow",
    429: "rate_limited",
}
_OVERFLOW_TEXTS = (
    "prompt is too long",
    "exceed context limit",
    "exceeds the context window",
    "exceeds the available context size",
)


def kind_of(status: int | None, body: Any) -> ErrorKind:
    """The kind of an error, from its status (None inside a stream) and its JSON body."""
    error = field(body, "error")
    name = field(error, "type")
    text = field(error, "message")
    if isinstance(text, str) and any(part in text.lower() for part in _OVERFLOW_TEXTS):
        return "context_overflow"
    if isinstance(name, str) and name in _KINDS:
        return _KINDS[name]
    if status in _STATUSES:
        return _STATUSES[status]
    if status is None:
        return "permanent" if isinstance(name, str) else "transient"
    return "transient" if status >= 500 else "permanent"
