"""`queue::define`, with the procedure of siblings 9: twenty attempts, old queue workers, clear failures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iii_kit.bus import Caller
from iii_kit.clients.engine import routed
from iii_kit.errors import BusError
from iii_kit.world import Clock

ATTEMPTS = 20
TIMEOUT_MS = 5_000
PAUSE_S = 0.25
REDELIVER = "redeliver_on_engine_restart"
_OLD_WORKER = f"unknown field `{REDELIVER}`"


class QueueUndefined(Exception):
    """A queue could not be defined: the worker cannot start."""


class QueueClient:
    """Defines queues. Jobs go in with `Caller.enqueue`."""

    def __init__(self, bus: Caller, clock: Clock, namespace: str | None = None) -> None:
        self._bus = bus
        self._clock = clock
        self._opts = routed(namespace, TIMEOUT_MS)

    async def define(self, queue: str, config: Mapping[str, Any], *, may_lose_redelivery: bool = False) -> None:
        """Define `queue`; raises `QueueUndefined` when the attempts run out.

        A queue worker too old to know `redeliver_on_engine_restart` gets the definition without it when the owner
        `may_lose_redelivery` (it recovers from records of its own), and is refused otherwise.
        """
        asked = dict(config)
        last: BusError | None = None
        for attempt in range(ATTEMPTS):
            if attempt:
                await self._clock.sleep(PAUSE_S)
            try:
                await self._bus.call("queue::define", {"queue": queue, "config": asked}, opts=self._opts)
                return
            except BusError as error:
                last = error
                if _OLD_WORKER in error.message:
                    if not may_lose_redelivery:
                        raise QueueUndefined(f"queue {queue} requires a queue worker supporting {REDELIVER}") from error
                    asked.pop(REDELIVER, None)
        raise QueueUndefined(f"queue::define {queue} failed after {ATTEMPTS} attempts: {last}") from last
