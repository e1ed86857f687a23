"""The embedded iii engine: wire protocol, registry, triggers, state, configuration, cron, channels, in-process bus."""

from iii_embedded.engine import Engine, EngineSettings
from iii_embedded.local_bus import LocalBus

__all__ = ["Engine", "EngineSettings", "LocalBus"]
