"""What the router knows: settings, registered providers, catalogue; and the events when they change (siblings 5, 6)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from iii_contracts import router as contract
from iii_kit.bindings import Bindings, Bound, event
from iii_kit.bus import Bus, Call, Json
from iii_kit.errors import BusError
from iii_kit.logs import logger
from iii_kit.storage import Store
from iii_kit.world import World
from iii_siblings.router.catalogue import Catalogue
from iii_siblings.router.registry import ProviderRegistry, Registered
from iii_siblings.router.routing import Route, route
from iii_siblings.router.settings import ProviderSettings, RouterSettings

_log = logger(__name__)


class Providers:
    """The knowledge of the router and its three trigger types."""

    def __init__(self, bus: Bus, world: World, store: Store, environ: Mapping[str, str]) -> None:
        self._bus = bus
        self.settings = RouterSettings()
        self.catalogue = Catalogue()
        self.registry = ProviderRegistry(store, world, self.catalogue, environ)
        self._ready = Bindings(contract.READY, on_bound=self._greet)
        self._models_changed = Bindings(contract.MODELS_CHANGED)
        self._provider_changed = Bindings(contract.PROVIDER_CHANGED)
        self._sending: set[asyncio.Task[None]] = set()
        for bindings in (self._ready, self._models_changed, self._provider_changed):
            bus.provide(bindings.spec, bindings)

    def route(self, model: str, provider: str | None) -> Route:
        """The provider of a model."""
        return route(model, provider, self.catalogue, self.registry, self.settings)

    def configured_budget(self, row: Registered, own: ProviderSettings) -> int | None:
        """The output ceiling that an operator, else the provider itself, has set."""
        if own.max_tokens is not None:
            return own.max_tokens
        return row.defaults.get("max_tokens")

    def mark(self, provider: str, *, available: bool) -> None:
        """Keep whether a provider's stream function is there, and tell when that changed."""
        if provider not in self.registry:
            return
        row = self.registry.get(provider)
        if row.available != available:
            row.available = available
            self.changed(provider, "available" if available else "unavailable")

    def changed(self, provider: str, op: str) -> None:
        """Tell that a provider changed state."""
        self._send(self._provider_changed.fire({"provider": provider, "op": op}))

    def reconciled(self, provider: str) -> None:
        """Tell that a provider's slice changed."""
        self._send(self._models_changed.fire({"provider": provider, "count": len(self.catalogue.of(provider))}))

    def ready(self) -> None:
        """Tell providers to register again and to look at their settings anew."""
        self._send(self._ready.fire({}))

    def rows(self) -> list[dict[str, Any]]:
        """The rows of `router::provider::list`."""
        return [self._row(self.registry.get(provider)) for provider in self.registry.ids]

    def _row(self, row: Registered) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "id": row.id,
            "configured": self.registry.configured(row, self.settings.provider(row.id)),
            "available": row.available,
            "supports_model_listing": row.registration.get("supports_model_listing") is True,
            "diagnostic": self.registry.diagnostic(row),
        }
        name = row.registration.get("display_name")
        return shown if name is None else {**shown, "display_name": name}

    def _greet(self, bound: Bound) -> None:
        self._send([event(bound.binding, {})])

    def _send(self, calls: list[Call]) -> None:
        for call in calls:
            task = asyncio.create_task(self._tell(call))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _tell(self, call: Call) -> Json:
        try:
            await self._bus.void(call.fn, call.data, opts=call.opts)
        except BusError as error:
            _log.warning("event_not_delivered", function=call.fn, code=error.code)
