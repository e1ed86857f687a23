"""One harness per engine: locks and the records in memory know of no other (harness-agents 17, item 14).

The engine refuses a second worker of the same name. One of another name would get none of the functions and yet bring
turns back, so it is found out here.
"""

from __future__ import annotations

from iii_contracts.harness import send
from iii_kit.bus import Bus
from iii_kit.clients.engine import DEFAULT_NAMESPACE, EngineClient
from iii_kit.errors import BusError


class NotAlone(BusError):
    """Another worker is the harness of this engine."""

    def __init__(self, other: str) -> None:
        super().__init__("not_alone", f"worker `{other}` serves {send.SEND.id} on this engine already: end it first")


async def require_alone(bus: Bus, namespace: str | None) -> None:
    """Raise `NotAlone` when the functions of the harness are served by another worker."""
    engine = EngineClient(bus)
    own = next((row["name"] for row in await engine.workers() if row["id"] == bus.worker_id), None)
    served = await engine.function(send.SEND.id, namespace or DEFAULT_NAMESPACE)
    other = None if served is None else served.get("worker_name")
    if own is not None and other is not None and other != own:
        raise NotAlone(other)
