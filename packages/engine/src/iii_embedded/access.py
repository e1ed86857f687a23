"""Who may connect (engine spec 4.8, design "Beyond loopback"): pages of other origins never, others with the token.

A browser names the origin of its page in every handshake; programs name none. A page that is not the product's own
could do everything on the bus, so it is refused whatever address it reached the engine by.
"""

from __future__ import annotations

import hmac
import ipaddress
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from websockets.http11 import Request


class Exposed(Exception):
    """The engine was told to listen beyond loopback without a token."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"refusing to listen on {host} without a token: whoever can reach the bus can do everything; "
            "set a bearer token, or listen on 127.0.0.1"
        )


class Access:
    """Decides handshakes."""

    def __init__(self, host: str, token: str | None, origins: tuple[str, ...]) -> None:
        if token is None and not is_loopback(host):
            raise Exposed(host)
        self._token = None if token is None else token.encode()
        self._origins = frozenset(origins)

    def refusal(self, request: Request) -> HTTPStatus | None:
        """The status that refuses a handshake, or None when it may go on."""
        origins = request.headers.get_all("Origin")
        if any(origin not in self._origins for origin in origins):
            return HTTPStatus.FORBIDDEN
        if self._token is not None and not any(hmac.compare_digest(self._token, given) for given in _tokens(request)):
            return HTTPStatus.UNAUTHORIZED
        return None


def is_loopback(host: str) -> bool:
    """True for an address that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _tokens(request: Request) -> list[bytes]:
    given = parse_qs(urlsplit(request.path).query).get("token", [])
    for header in request.headers.get_all("Authorization"):
        scheme, _, value = header.partition(" ")
        if scheme.lower() == "bearer":
            given.append(value.strip())
    return [token.encode() for token in given]
