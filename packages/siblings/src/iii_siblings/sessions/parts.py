"""What every function of the store works with: clock, ids, events and limits."""

from __future__ import annotations

from dataclasses import dataclass, field

from iii_kit.world import World
from iii_siblings.sessions.events import Events

DEFAULT_PAGE = 50
MAX_PAGE = 500
MAX_ATTACHMENT_BYTES = 20 * 1024 * 1024


@dataclass(slots=True)
class Limits:
    """Limits that the configuration entry `session-manager` sets."""

    page: int = DEFAULT_PAGE
    max_page: int = MAX_PAGE
    attachment_bytes: int = MAX_ATTACHMENT_BYTES

    def page_size(self, asked: int | None) -> int:
        """Items in a page: the default when nothing was asked, never more than the maximum."""
        return min(self.page if asked is None else asked, self.max_page)


@dataclass(frozen=True, slots=True)
class Parts:
    """Shared by all functions."""

    world: World
    events: Events
    limits: Limits = field(default_factory=Limits)

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return self.world.clock.now_ms()
