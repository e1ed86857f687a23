"""Publish and subscribe (engine spec 15.1): data to whoever is bound to the topic now, at most once."""

from __future__ import annotations

from iii_contracts.engine.pubsub import PUBLISH, SUBSCRIBE, PublishRequest
from iii_embedded.modules.firing import EngineTrigger
from iii_kit.bus import Bus, Invocation
from iii_kit.errors import BusError


class PubSub:
    """The topics of one engine; a topic exists while somebody is bound to it."""

    def __init__(self, bus: Bus) -> None:
        self._subscriptions = EngineTrigger(bus, SUBSCRIBE, null_is_empty=True)
        bus.provide(SUBSCRIBE, self._subscriptions)
        bus.serve(PUBLISH, self._publish)

    async def ready(self) -> None:
        """Works as soon as it is installed."""

    async def drain(self) -> None:
        """Nothing runs here on its own."""

    async def _publish(self, request: PublishRequest, _: Invocation) -> None:
        if not request.topic:
            raise BusError("topic_not_set", "the topic is empty")
        await self._subscriptions.fire(lambda config: config.topic == request.topic, request.data, with_metadata=False)


def install(bus: Bus) -> PubSub:
    """Serve `publish` and provide `subscribe` on `bus`."""
    return PubSub(bus)
