"""What the shell works with: the bus, the world, the loop's own state in memory and its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from iii_harness.context_rows import ContextRows
from iii_harness.locks import Locks
from iii_harness.ports import Delivery, Limits, Surfaces, TurnEvents
from iii_harness.signals import CancelSignals, ExecutingSteps
from iii_harness.turn_store import TurnStore
from iii_kit.bus import Caller, Opts
from iii_kit.world import World


@dataclass(frozen=True, slots=True)
class Parts:
    """One set per harness."""

    bus: Caller
    targets: Caller
    """The bus on which targets of calls are invoked: nothing on the way there calls twice."""
    world: World
    turns: TurnStore
    contexts: ContextRows
    locks: Locks
    signals: CancelSignals
    executing: ExecutingSteps
    surfaces: Surfaces
    delivery: Delivery
    events: TurnEvents
    limits: Callable[[], Limits]
    absent: Callable[[str], bool]
    """Whether the registry is known not to have a function; false while it has not been read."""
    keeps_replies: Callable[[], bool]
    """Whether the session store gives a reply back as it was written (siblings 3.5), by the contract it registered."""

    def session_opts(self) -> Opts:
        """How `session::*` calls travel."""
        return Opts(timeout_ms=self.limits().session_timeout_ms)

    def partial_opts(self) -> Opts:
        """How updates of a reply that still streams travel (17)."""
        return Opts(timeout_ms=self.limits().session_timeout_ms, hidden="session updates")
