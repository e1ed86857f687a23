"""Kinds of the API's errors (siblings 8)."""

from __future__ import annotations

from typing import Any

from iii_contracts.messages import ErrorKind
from iii_siblings.providers.payload import field

_OVERFLOW = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_AUTH = frozenset({"invalid_api_key", "account_deactivated"})
_OVERFLOW_TEXTS = ("maximum context length", "context length exceeded", "exceeds the available context size")


def kind_of(status: int | None, body: Any) -> ErrorKind:
    """The kind of an error, from its status (None inside a stream) and its JSON body."""
    error = field(body, "error") if isinstance(field(body, "error"), dict) else body
    codes = {value for value in (field(error, "code"), field(error, "type")) if isinstance(value, str)}
    if codes & _OVERFLOW or _says_overflow(error):
        return "context_overflow"
    if "insufficient_quota" in codes:
        return "permanent"
    if codes & _AUTH or status in (401, 403):
        return "auth_expired"
    if status == 429 or codes & {"rate_limit_exceeded", "rate_limit_error"}:
        return "rate_limited"
    if "server_error" in codes or (status is not None and status >= 500):
        return "transient"
    return "permanent" if status is not None or codes else "transient"


def _says_overflow(error: Any) -> bool:
    text = field(error, "message")
    return isinstance(text, str) and any(part in text.lower() for part in _OVERFLOW_TEXTS)
