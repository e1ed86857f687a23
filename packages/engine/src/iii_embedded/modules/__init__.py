"""The built-in modules of the engine: state, configuration, cron, publish and subscribe.

Each sits on a bus of its own under the name that the engine lists it by (engine spec 23).
"""

from __future__ import annotations

from collections.abc import Callable

from iii_embedded.modules import configuration, cron, pubsub, state
from iii_kit.bus import Bus
from iii_kit.world import World
from iii_store.schema import Family

FAMILIES: tuple[Family, ...] = (state.FAMILY, configuration.FAMILY)
"""The tables of the modules."""

Module = state.State | configuration.Configuration | cron.Cron | pubsub.PubSub


def install(attach: Callable[[str], Bus], world: World) -> list[Module]:
    """Install every module; `attach` gives the bus of a built-in worker by its name."""
    return [
        state.install(attach("iii-state")),
        configuration.install(attach("configuration"), world),
        cron.install(attach("iii-cron"), world),
        pubsub.install(attach("iii-pubsub")),
    ]
