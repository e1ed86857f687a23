"""Who may talk to the page host (siblings 15.3, design "Decided interfaces").

Two ways lead from a foreign page to a server on this machine: asking it directly, which the browser marks with the
page's `Origin`, and giving the server's address to a name of the attacker's own (DNS rebinding), which shows in
`Host`. So `Host` must be a name that cannot be rebound, and an `Origin` must be this very host. Programs send no
`Origin`; they pass.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

_FORM = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")
"""What a `Host` can look like."""

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Gate:
    """Decides whether a request is for this host and comes from its own page."""

    def __init__(self, host: str) -> None:
        self._host = f"[{host}]" if ":" in host else host.lower()
        self._local = _is_loopback(host)

    def refusal(self, hosts: Sequence[str], origins: Sequence[str]) -> str | None:
        """Why a request with these header values is refused; None when it may pass."""
        if len(hosts) != 1 or not _FORM.fullmatch(hosts[0]) or not self._is_ours(_name(hosts[0])):
            return "this address is not one of the page host's own names: open the page by the address it printed"
        own = hosts[0].lower()
        if any(origin.lower() not in (f"http://{own}", f"https://{own}") for origin in origins):
            return "a page of another origin may not talk to this stack"
        return None

    def _is_ours(self, name: str) -> bool:
        if name in LOCAL_NAMES or name == self._host:
            return True
        return not self._local and _is_address(name.strip("[]"))


def _name(host: str) -> str:
    """The name in a `Host` header, without the port, lower case."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.rpartition(":")[0] if ":" in host else host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host).is_loopback
