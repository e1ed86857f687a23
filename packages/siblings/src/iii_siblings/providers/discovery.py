"""Which models a provider's server lists, told to the router (siblings 6): one listing at a time.

A listing that somebody asks for begins after the one that runs, and is shared by all who ask until it begins. Whatever
was found out about an endpoint and a key is told again, without asking the server, to a router that greets soon after.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from iii_contracts.messages import RETRYABLE
from iii_contracts.router import CODE_OF_KIND
from iii_kit.errors import BusError
from iii_kit.logs import logger
from iii_kit.world import Clock
from iii_siblings.providers.failure import UpstreamFailure
from iii_siblings.providers.link import RouterLink, Secret

FIRST_DISCOVERY_S = 1.0
"""How long the start waits for the first list of models."""
FIRST_RETRY_S = 5.0
LONGEST_RETRY_S = 300.0
KNOWN_FOR_S = 30.0
"""How long a greeting of the router is answered with what is known."""

_log = logger(__name__)


class Endpoint(Protocol):
    """Where a provider's requests go."""

    @property
    def url(self) -> str:
        """Of generations."""
        ...

    @property
    def models_url(self) -> str:
        """Of the list of models."""
        ...

    @property
    def needs_key(self) -> bool:
        """False where a server may want none."""
        ...


T = TypeVar("T")
E = TypeVar("E", bound=Endpoint)


@dataclass(frozen=True, slots=True)
class Source(Generic[E]):
    """Where to ask, and with which key; no endpoint when the configured URL is none."""

    endpoint: E | None
    key: Secret

    @property
    def usable(self) -> E | None:
        """The endpoint, unless it lacks its key."""
        lacking = self.endpoint is None or (self.endpoint.needs_key and not self.key.text)
        return None if lacking else self.endpoint


@dataclass(frozen=True, slots=True)
class _Known:
    """What a server said, and what the router is told of it."""

    source: Source[Any]
    at: float
    models: list[dict[str, Any]]
    status: dict[str, Any]


class Discovery(Generic[E]):
    """The listings of one provider."""

    def __init__(
        self,
        link: RouterLink,
        clock: Clock,
        source: Callable[[], Awaitable[Source[E]]],
        models: Callable[[E, Secret], Awaitable[list[dict[str, Any]]]],
    ) -> None:
        self._link = link
        self._clock = clock
        self._source = source
        self._models = models
        self._one = asyncio.Lock()
        self._asked: asyncio.Task[int] | None = None
        self._known: _Known | None = None
        self._wanted = asyncio.Event()
        self._background: asyncio.Task[None] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    async def begin(self) -> None:
        """Tell the router the models, in the background; returns when it was tried, or after a second.

        A server that is away for now is asked again later.
        """
        tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(tried)
        self._wanted.set()
        if self._background is None or self._background.done():
            self._background = self._task(self._run())
        limit = asyncio.create_task(self._clock.sleep(FIRST_DISCOVERY_S))
        try:
            await asyncio.wait({tried, limit}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            limit.cancel()

    async def asked(self) -> int:
        """How many models a listing that begins now, or after the running one, has told. Raises `UpstreamFailure`."""
        if self._asked is None:
            self._asked = self._task(self._listed())
        return await asyncio.shield(self._asked)

    async def drain(self) -> None:
        """Stop asking."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def report(self, failure: UpstreamFailure, **states: str) -> None:
        """Tell the router of a failure."""
        try:
            await self._link.status(**self._told(failure), **states)
        except BusError as error:
            _log.debug("status_not_told", provider=self._link.provider, code=error.code)

    def _task(self, run: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(run)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # who asked may have left; then nobody else looks at it

    async def _listed(self) -> int:
        try:
            async with self._one:
                self._asked = None
                return await self._discover(anew=True)
        finally:
            if self._asked is asyncio.current_task():
                self._asked = None

    async def _run(self) -> None:
        pause = FIRST_RETRY_S
        while self._wanted.is_set():
            self._wanted.clear()
            waiting, self._waiting = self._waiting, []
            try:
                worked = await self._attempt()
            finally:
                for tried in waiting:
                    if not tried.done():
                        tried.set_result(None)
            if not worked:
                await self._pause(pause)
                pause = min(LONGEST_RETRY_S, pause * 2)
                self._wanted.set()

    async def _attempt(self) -> bool:
        try:
            async with self._one:
                await self._discover(anew=False)
            return True
        except UpstreamFailure as failure:
            _log.info("models_not_listed", provider=self._link.provider, kind=failure.kind, text=failure.text)
        except BusError as error:
            _log.info("models_not_told", provider=self._link.provider, code=error.code)
        return False

    async def _pause(self, seconds: float) -> None:
        """Wait, unless a new attempt is wanted before."""
        over = {asyncio.create_task(self._clock.sleep(seconds)), asyncio.create_task(self._wanted.wait())}
        try:
            await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in over:
                task.cancel()

    async def _discover(self, *, anew: bool) -> int:
        source = await self._source()
        endpoint = source.usable
        if endpoint is None:
            self._known = None
            await self._link.status(catalog_state="empty", credential_state="missing")
            return await self._link.reconcile([])
        known = self._known
        now = self._clock.monotonic()
        if anew or known is None or known.source != source or now - known.at >= KNOWN_FOR_S:
            self._known = known = await self._ask(source, endpoint, now)
        count = await self._link.reconcile(known.models)
        await self._link.status(**known.status)
        return count

    async def _ask(self, source: Source[E], endpoint: E, now: float) -> _Known:
        try:
            models = await self._models(endpoint, source.key)
        except UpstreamFailure as failure:
            if failure.kind in RETRYABLE:
                told = {**self._told(failure), "catalog_state": "error"}
                if self._known is not None:
                    self._known = replace(self._known, status=told)
                await self.report(failure, catalog_state="error")
                raise
            credential = "missing" if failure.kind == "auth_expired" else "ready"
            status = {**self._told(failure), "catalog_state": "empty", "credential_state": credential}
            return _Known(source, now, [], status)
        state = "ready" if models else "empty"
        return _Known(source, now, models, {"catalog_state": state, "credential_state": "ready", "clear_failure": True})

    def _told(self, failure: UpstreamFailure) -> dict[str, Any]:
        shown = {
            "code": CODE_OF_KIND[failure.kind],
            "kind": failure.kind,
            "message": failure.text,
            "retryable": failure.kind in RETRYABLE,
            "attempts": 1,
            "provider": self._link.provider,
        }
        return {"failure": shown}
