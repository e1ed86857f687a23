"""The timer that calls the sweep: a `cron` binding that follows the configuration (harness-loop 9.1, 19).

A changed expression is bound first, and only when it is in force does the old binding go: what the cron worker refuses
leaves the old timer as it was.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

from iii_contracts.harness import upkeep
from iii_kit.bus import Bus, Handle
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger
from iii_kit.world import Clock

log = logger(__name__)

CRON: Final = "cron"

LOOKS_S: Final = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 1.0, 1.0)
"""Pauses before the looks at whether a new binding is in force."""


class SweepTimer:
    """Holds the binding."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._turn = asyncio.Lock()
        self._handle: Handle | None = None
        self.expression: str | None = None

    async def follow(self, expression: str) -> None:
        """Call the sweep by `expression` from now on, if the cron worker takes it."""
        async with self._turn:
            if expression == self.expression:
                return
            fresh = self._bus.bind(CRON, upkeep.SWEEP_PENDING.id, {"expression": expression})
            if self._handle is not None and not await self._in_force(expression):
                fresh.close()
                log.warning("sweep_timer_kept", refused=expression, kept=self.expression)
                return
            self.close()
            self._handle, self.expression = fresh, expression

    def close(self) -> None:
        """End the timer."""
        if self._handle is not None:
            self._handle.close()
        self._handle = self.expression = None

    async def _in_force(self, expression: str) -> bool:
        """True once the new binding works, or when none does: then nobody provides timers, and nothing is refused."""
        bound: set[str] = set()
        for pause in LOOKS_S:
            await self._clock.sleep(pause)
            try:
                bound = await self._expressions()
            except EpochEnded:
                raise
            except BusError as error:
                log.warning("sweep_timer_unknown", error=str(error))
                return False
            if expression in bound:
                return True
        return not bound

    async def _expressions(self) -> set[str]:
        """What the bindings in force say."""
        asked = {"trigger_type": CRON, "function_id": upkeep.SWEEP_PENDING.id}
        listed = (await self._bus.call("engine::registered-triggers::list", asked))["registered_triggers"]
        found: set[str] = set()
        for row in listed:
            detail = await self._bus.call("engine::registered-triggers::info", {"id": row["id"]})
            config: Any = detail.get("config")
            if isinstance(config, dict):
                found.add(str(cast("dict[str, Any]", config).get("expression")))
        return found
