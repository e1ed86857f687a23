"""Failures of a provider's server, with texts that say nothing of what it answered (siblings 6)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime

from iii_contracts.messages import ErrorKind


class UpstreamFailure(Exception):
    """The server refused, failed, or broke off."""

    def __init__(self, kind: ErrorKind, text: str, retry_after_ms: int | None = None) -> None:
        super().__init__(text)
        self.kind: ErrorKind = kind
        self.text = text
        self.retry_after_ms = retry_after_ms


_TEXTS: dict[str, str] = {
    "auth_expired": "{p} authentication failed (HTTP {s}); refresh credentials",
    "rate_limited": "{p} rate limit reached (HTTP {s}); retry later",
    "context_overflow": "request exceeds the {p} context limit (HTTP {s})",
    "transient": "{p} is temporarily unavailable (HTTP {s})",
    "permanent": "{p} rejected the request (HTTP {s})",
}


def refused(provider: str, kind: ErrorKind, status: int, retry_after_ms: int | None = None) -> UpstreamFailure:
    """The failure of an answer with a status."""
    return UpstreamFailure(kind, _TEXTS[kind].format(p=provider, s=status), retry_after_ms)


def no_response(provider: str) -> UpstreamFailure:
    """The failure of a request without an answer."""
    return UpstreamFailure("transient", f"{provider} request failed before a response; inspect provider logs")


def retry_after(headers: Callable[[str], str | None], now_ms: int) -> int | None:
    """The wait that an answer asks for, in milliseconds: `retry-after-ms`, or `retry-after` in seconds or as a date."""
    exact = _number(headers("retry-after-ms"))
    if exact is not None:
        return int(exact)
    given = headers("retry-after")
    seconds = _number(given)
    if seconds is not None:
        return int(seconds * 1000)
    try:
        date = parsedate_to_datetime(given or "")
    except ValueError:
        return None
    aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return max(0, int(aware.timestamp() * 1000) - now_ms)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None
