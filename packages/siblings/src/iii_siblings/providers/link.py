"""A provider's side of its registration with the router (siblings 6).

The token is made here and kept in the engine's state before it is first shown, so that a crash between the two
halves of a registration locks nobody out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

from iii_contracts import router as contract
from iii_kit.bus import Bus, Invocation, Json
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger
from iii_kit.world import World

TOKEN_KEY = "registration_token"
RESOLVED_FOR_S = 30.0
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 5.0

_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Secret:
    """A key or an access token; empty when there is none. It is never shown."""

    text: str = field(repr=False)
    is_token: bool = False
    """True for the access token of an OAuth login."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What the router says about key and endpoint."""

    configured: bool
    key: Secret
    api_url: str | None


class RouterLink:
    """Registration, key and catalogue slice of one provider."""

    def __init__(self, bus: Bus, world: World, provider: str) -> None:
        self.provider = provider
        self._bus = bus
        self._world = world
        self._token: str | None = None
        self._registered = False
        self._resolved: tuple[float, Resolved] | None = None

    @property
    def registered(self) -> bool:
        """True once the router has accepted this provider."""
        return self._registered

    async def register(self, described: dict[str, Any]) -> None:
        """Register, or renew; `described` is the request without id and token."""
        token = await self._own_token()
        request = {**described, "id": self.provider, "token": token, "worker_id": self._bus.worker_id}
        answer = await self._bus.call(contract.PROVIDER_REGISTER.id, request)
        if answer["registration_token"] != token:
            await self._keep(answer["registration_token"])
        self._registered = True
        self.forget_resolved()

    async def resolve(self) -> Resolved:
        """Key and endpoint, remembered for half a minute."""
        now = self._world.clock.monotonic()
        if self._resolved is not None and now - self._resolved[0] < RESOLVED_FOR_S:
            return self._resolved[1]
        answer = await self._bus.call(contract.PROVIDER_RESOLVE.id, {"id": self.provider, "token": self._token})
        credential: dict[str, Any] = answer.get("credential") or {}
        text = str(credential.get("key") or credential.get("access_token") or "").strip()
        key = Secret(text, credential.get("type") == "oauth")
        resolved = Resolved(answer["configured"], key, answer.get("api_url"))
        self._resolved = (now, resolved)
        return resolved

    def forget_resolved(self) -> None:
        """Ask the router anew next time."""
        self._resolved = None

    async def reconcile(self, models: list[dict[str, Any]]) -> int:
        """Tell the router the whole slice; returns how many models it has now."""
        request = {"provider": self.provider, "token": self._token, "models": models}
        return (await self._bus.call(contract.MODELS_RECONCILE.id, request))["count"]

    async def status(self, **report: Any) -> None:
        """Report how this provider is."""
        await self._bus.call(contract.PROVIDER_STATUS.id, {"id": self.provider, "token": self._token, **report})

    async def _own_token(self) -> str:
        if self._token is None:
            answer = await self._state("get", {"key": TOKEN_KEY})
            if isinstance(answer, str) and answer:
                self._token = answer
            else:
                await self._keep(self._world.ids.hex())
        return cast("str", self._token)

    async def _keep(self, token: str) -> None:
        await self._state("set", {"key": TOKEN_KEY, "value": token})
        self._token = token

    async def _state(self, operation: str, request: dict[str, Any]) -> Json:
        try:
            return await self._bus.call(f"state::{operation}", {"scope": f"provider-{self.provider}", **request})
        except BusError as error:
            if not error.matches("function_not_found"):
                raise
            return None


class Refresher:
    """Runs a provider's refresh: at every connection, when the router asks, and again after a failure.

    One refresh runs at a time; requests that come meanwhile are answered by one more run.
    """

    def __init__(self, bus: Bus, world: World, link: RouterLink, refresh: Callable[[], Awaitable[None]]) -> None:
        self._world = world
        self._link = link
        self._refresh = refresh
        self._wanted = asyncio.Event()
        self._first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        bus.each_epoch(self._run)

    async def ready(self) -> None:
        """Return after the first refresh that went through."""
        await asyncio.shield(self._first)

    async def on_router_ready(self, _: Any, __: Invocation) -> Json:
        """Serve `provider::<id>::on_router_ready`."""
        self.want()
        return {"ok": True}

    def want(self) -> None:
        """Refresh once more."""
        self._link.forget_resolved()
        self._wanted.set()

    async def _run(self) -> None:
        pause = FIRST_PAUSE_S
        self._wanted.set()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._refresh()
            except EpochEnded:
                raise
            except BusError as error:
                _log.debug("provider_not_registered", provider=self._link.provider, code=error.code)
                await self._world.clock.sleep(pause)
                pause = min(LONGEST_PAUSE_S, pause * 2)
                self._wanted.set()
                continue
            pause = FIRST_PAUSE_S
            if not self._first.done():
                self._first.set_result(None)
