"""`state::*` (engine spec 13, harness-loop 4).

A listing answers an array, `{values: []}`, `{items: []}` or a map from keys to values, depending on the provider's
version; all are read.
"""

from __future__ import annotations

from typing import Any, cast

from iii_kit.bus import Call, Caller, Json
from iii_kit.clients.engine import routed


class StateClient:
    """State of one namespace."""

    def __init__(self, bus: Caller, namespace: str | None = None) -> None:
        self._bus = bus
        self._opts = routed(namespace)

    async def get(self, scope: str, key: str) -> Json:
        """The value, or None."""
        return await self._bus.call("state::get", {"scope": scope, "key": key}, opts=self._opts)

    async def set(self, scope: str, key: str, value: Json) -> None:
        """Write whole."""
        await self._bus.call("state::set", {"scope": scope, "key": key, "value": value}, opts=self._opts)

    async def delete(self, scope: str, key: str) -> Json:
        """Delete; the old value, or None."""
        return await self._bus.call("state::delete", {"scope": scope, "key": key}, opts=self._opts)

    async def list(self, scope: str) -> list[Json]:
        """The values of a scope; each carries its own key."""
        return listed(await self._bus.call("state::list", {"scope": scope}, opts=self._opts))

    def set_call(self, scope: str, key: str, value: Json) -> Call:
        """`set`, for a sequence."""
        return Call("state::set", {"scope": scope, "key": key, "value": value}, opts=self._opts)

    def delete_call(self, scope: str, key: str) -> Call:
        """`delete`, for a sequence."""
        return Call("state::delete", {"scope": scope, "key": key}, opts=self._opts)


def listed(answer: Json) -> list[Json]:
    """The values in any form of a listing."""
    if isinstance(answer, list):
        return cast("list[Json]", answer)
    if not isinstance(answer, dict):
        return []
    fields = cast("dict[str, Any]", answer)
    for form in ("values", "items"):
        if isinstance(fields.get(form), list):
            return cast("list[Json]", fields[form])
    return list(fields.values())
