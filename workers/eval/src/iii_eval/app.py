"""Eval as one worker: what it registers, when it is ready, how it ends (eval 1.1, 1.2).

It serves the comparison of sessions. That keeps nothing and waits for nobody, so there is nothing to prepare: a
worker that a comparison needs and that is not there is named in the answer.
"""

from __future__ import annotations

from iii_contracts.eval.comparison import COMPARE_SESSIONS
from iii_eval.comparison import Comparison
from iii_kit.bus import Bus
from iii_kit.world import World


class Eval:
    """The installed worker."""

    def __init__(self, bus: Bus, world: World) -> None:
        self._handles = [bus.serve(COMPARE_SESSIONS, Comparison(bus, world.clock).compare)]

    async def ready(self) -> None:
        """Return once the worker works: it does as soon as it is registered."""

    async def drain(self, grace_s: float = 0.0) -> None:
        """Accept nothing more. A comparison that runs is a read that its caller makes again: nothing waits for it."""
        for handle in self._handles:
            handle.close()


def install(bus: Bus, world: World) -> Eval:
    """Install eval on `bus`."""
    return Eval(bus, world)
