"""Base URLs that an operator gave: split, checked and extended."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit, urlunsplit


class BadUrl(ValueError):
    """The configured URL is no http(s) URL."""


def split(url: str) -> SplitResult:
    """The parts of an http(s) URL with a host. Raises `BadUrl`."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return parts
    except ValueError:
        pass
    raise BadUrl("not an http or https URL")


def at(parts: SplitResult, path: str, query: str = "") -> str:
    """The URL of another path of the same server; what the base URL asks for stays."""
    both = "&".join(part for part in (parts.query, query) if part)
    return urlunsplit((parts.scheme, parts.netloc, path, both, ""))
