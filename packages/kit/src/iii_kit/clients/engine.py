"""The engine's introspection, as far as workers use it (engine spec 12.2, 21.5)."""

from __future__ import annotations

from typing import Any

from iii_kit.bus import Caller, Opts
from iii_kit.errors import BusError

DEFAULT_NAMESPACE = "default"


class EngineClient:
    """`engine::functions::*` and `engine::workers::list`."""

    def __init__(self, bus: Caller) -> None:
        self._bus = bus

    async def functions(self, **filters: Any) -> list[dict[str, Any]]:
        """Rows of `engine::functions::list`; filters `search`, `prefix`, `worker`, `namespace`, `include_internal`."""
        return (await self._bus.call("engine::functions::list", filters))["functions"]

    async def function(self, function_id: str, namespace: str | None = None) -> dict[str, Any] | None:
        """The detail of one function with its schemas, or None when nobody serves it."""
        request = {"function_id": function_id}
        if namespace is not None:
            request["namespace"] = namespace
        try:
            return await self._bus.call("engine::functions::info", request)
        except BusError as error:
            if error.matches("NOT_FOUND"):
                return None
            raise

    async def workers(self) -> list[dict[str, Any]]:
        """Rows of `engine::workers::list`."""
        return (await self._bus.call("engine::workers::list", {}))["workers"]

    async def provider_namespace(self, function_id: str, own: str | None) -> str:
        """Where a family of functions is called: `own` when `function_id` is served there, else `default`."""
        if own is None or own == DEFAULT_NAMESPACE:
            return DEFAULT_NAMESPACE
        return own if await self.function(function_id, own) is not None else DEFAULT_NAMESPACE


def routed(namespace: str | None, timeout_ms: int | None = None) -> Opts:
    """The options of a client's calls."""
    return Opts(namespace=namespace) if timeout_ms is None else Opts(timeout_ms=timeout_ms, namespace=namespace)
