"""The embedded siblings of the workers: which there are and in which order they start (siblings 17.1, 17.3).

One list for both arrangements: inside the stack's process, and in a process of their own beside an engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import iii_siblings.providers.anthropic as anthropic
import iii_siblings.providers.openai as openai
import iii_siblings.providers.scripted as scripted
import iii_siblings.router as router
from iii_kit.bus import Bus
from iii_kit.storage import Store
from iii_kit.world import World
from iii_siblings import sessions
from iii_store.schema import Family


class Worker(Protocol):
    """An installed worker or module."""

    async def ready(self) -> None:
        """Return when it works."""
        ...

    async def drain(self) -> None:
        """Take nothing more on; what runs ends or stays durable."""
        ...


@dataclass(frozen=True, slots=True)
class Sibling:
    """One of them: its name in messages, its worker's name, the prefix that its functions share."""

    name: str
    worker: str
    prefix: str
    install: Callable[[Bus, World, Store], Worker]


SIBLINGS: tuple[Sibling, ...] = (
    Sibling("sessions", "session-manager", "session::", lambda bus, world, _: sessions.install(bus, world)),
    Sibling("router", "llm-router", "router::", router.install),
    Sibling(
        "provider anthropic",
        "provider-anthropic",
        "provider::anthropic::",
        lambda bus, world, _: anthropic.install(bus, world),
    ),
    Sibling(
        "provider openai", "provider-openai", "provider::openai::", lambda bus, world, _: openai.install(bus, world)
    ),
    Sibling(
        "provider scripted",
        "provider-scripted",
        "provider::scripted::",
        lambda bus, world, _: scripted.install(bus, world),
    ),
)

FAMILIES: tuple[Family, ...] = (sessions.FAMILY, router.FAMILY)
"""Their tables."""
