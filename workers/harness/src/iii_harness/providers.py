"""Where the harness's own bookkeeping lives: the namespaces of state and queue, fixed at boot (harness-loop 1.1, 1.2).

A worker with a namespace of its own keeps its rows and its queue there when somebody serves them there, else in
`default`; each family by itself. Fixed, since rows written in one place would be missed in the other.
"""

from __future__ import annotations

from iii_kit.bus import Caller
from iii_kit.clients.engine import DEFAULT_NAMESPACE, EngineClient


class Providers:
    """The namespaces; None, the bus's own default, for a worker without a namespace."""

    def __init__(self, bus: Caller, own: str | None) -> None:
        self._engine = EngineClient(bus)
        self._own = None if own in ("", DEFAULT_NAMESPACE) else own
        self._fixed = False
        self.state: str | None = None
        self.queue: str | None = None

    async def fix(self) -> None:
        """Look for the providers, once for the life of this process."""
        if self._fixed:
            return
        if self._own is not None:
            self.state = await self._engine.provider_namespace("state::get", self._own)
            self.queue = await self._engine.provider_namespace("queue::define", self._own)
        self._fixed = True
