"""`router::*`, as harness uses it (siblings 5). Reading the stream of a chat belongs to harness."""

from __future__ import annotations

from typing import Any

from iii_kit.bus import Caller, ChannelRef, Opts

CHAT_TIMEOUT_MS = 320_000
"""At least the router's own budget for a stream (siblings 5.2)."""


class RouterClient:
    """Generation, capabilities and prices of models."""

    def __init__(self, bus: Caller) -> None:
        self._bus = bus

    async def chat(
        self, writer: ChannelRef, request: dict[str, Any], *, timeout_ms: int = CHAT_TIMEOUT_MS
    ) -> dict[str, Any]:
        """Stream a generation into `writer`; returns `{ok, provider, model, ...}` when the stream has ended."""
        data = {**request, "writer_ref": writer.to_json()}
        return await self._bus.call("router::chat", data, opts=Opts(timeout_ms=timeout_ms))

    async def abort(self, request_id: str) -> bool:
        """Stop a stream; False when the router knows no such request."""
        return (await self._bus.call("router::abort", {"request_id": request_id}))["aborted"]

    async def models(self, **filters: Any) -> list[dict[str, Any]]:
        """The catalogue; filters `provider`, `capability`, `modality`."""
        return (await self._bus.call("router::models::list", filters))["models"]

    async def model(self, provider: str, model: str) -> dict[str, Any] | None:
        """One model of the catalogue, or None."""
        answer = await self._bus.call("router::models::get", {"provider": provider, "id": model})
        return answer["model"] if answer else None

    async def supports(self, provider: str, model: str, capability: str) -> bool:
        """True when the catalogue says so; unknown models and capabilities are False."""
        request = {"provider": provider, "id": model, "capability": capability}
        return (await self._bus.call("router::models::supports", request))["supported"]

    async def budget(self, provider: str, model: str, max_output_tokens: int | None = None) -> dict[str, Any]:
        """`{model, effective_max_output_tokens}`."""
        request: dict[str, Any] = {"provider": provider, "id": model}
        if max_output_tokens is not None:
            request["max_output_tokens"] = max_output_tokens
        return await self._bus.call("router::models::budget", request)

    async def route(self, model: str, provider: str | None = None) -> dict[str, Any]:
        """`{provider, candidates}` of a model."""
        return await self._bus.call("router::route", {"model": model} | ({"provider": provider} if provider else {}))
