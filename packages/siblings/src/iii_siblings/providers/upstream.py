"""Requests to the server of an API: one pooled client, made when it is first needed (siblings 7, 8).

What the server answers never reaches a text: errors are told by kind and status alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iii_contracts.messages import ErrorKind
from iii_siblings.providers.failure import UpstreamFailure, no_response, refused, retry_after
from iii_siblings.providers.link import Secret
from iii_siblings.providers.payload import parsed

if TYPE_CHECKING:
    import httpx

    from iii_kit.world import Clock

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 120.0
LISTING_TIMEOUT_S = 15.0
DRAIN_S = 0.25
MAX_ERROR_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Manners:
    """What a provider's server expects, and how its errors are told apart."""

    provider: str
    headers: Callable[[Secret], dict[str, str]]
    """Headers of a request with a key, which may be empty."""
    kind_of: Callable[[int | None, Any], ErrorKind]
    """The kind of an error, from its status (None inside a stream) and its JSON body."""


class Upstream:
    """The client of one provider."""

    def __init__(self, manners: Manners, clock: Clock, read_timeout_s: float = READ_TIMEOUT_S) -> None:
        self._manners = manners
        self._provider = manners.provider
        self._clock = clock
        self._read_timeout_s = read_timeout_s
        self._client: httpx.AsyncClient | None = None

    @asynccontextmanager
    async def stream(self, url: str, key: Secret, body: bytes) -> AsyncGenerator[AsyncIterator[bytes]]:
        """POST `body`; gives the bytes of a streamed answer. Raises `UpstreamFailure`."""
        import httpx

        headers = self._headers(key) | {"content-type": "application/json", "accept": "text/event-stream"}
        try:
            async with self._pool().stream("POST", url, content=body, headers=headers) as response:
                if response.status_code != 200:
                    raise await self._refused(response)
                chunks = _chunks(response, self._provider)
                try:
                    yield chunks
                    await _drained(chunks)
                finally:
                    await chunks.aclose()
        except (httpx.HTTPError, httpx.InvalidURL):
            raise no_response(self._provider) from None

    async def models(self, url: str, key: Secret) -> Any:
        """GET the list of models. Raises `UpstreamFailure`."""
        import httpx

        try:
            response = await self._pool().get(url, headers=self._headers(key), timeout=LISTING_TIMEOUT_S)
        except (httpx.HTTPError, httpx.InvalidURL):
            raise no_response(self._provider) from None
        if response.status_code != 200:
            raise self._failure(response, response.content[:MAX_ERROR_BYTES])
        try:
            return parsed(response.content)
        except (ValueError, RecursionError):
            raise UpstreamFailure("transient", f"{self._provider} sent an unreadable list of models") from None

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _pool(self) -> httpx.AsyncClient:
        if self._client is None:
            import httpx

            timeout = httpx.Timeout(self._read_timeout_s, connect=CONNECT_TIMEOUT_S)
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=32)
            self._client = httpx.AsyncClient(timeout=timeout, limits=limits)
        return self._client

    def _headers(self, key: Secret) -> dict[str, str]:
        if not key.text.isascii() or not key.text.isprintable():
            text = f"the key of provider {self._provider} holds characters that no header can carry"
            raise UpstreamFailure("auth_expired", text)
        return self._manners.headers(key)

    async def _refused(self, response: httpx.Response) -> UpstreamFailure:
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_ERROR_BYTES:
                break
        return self._failure(response, body)

    def _failure(self, response: httpx.Response, body: bytes) -> UpstreamFailure:
        try:
            value = parsed(body)
        except (ValueError, RecursionError):
            value = None
        status = response.status_code
        wait = retry_after(response.headers.get, self._clock.now_ms())
        return refused(self._provider, self._manners.kind_of(status, value), status, wait)


async def _chunks(response: httpx.Response, provider: str) -> AsyncGenerator[bytes]:
    """The bytes of an answer, until they end in whatever way. Raises `UpstreamFailure` for a server that is silent."""
    import httpx

    try:
        async for chunk in response.aiter_bytes():
            yield chunk
    except httpx.ReadTimeout:
        raise UpstreamFailure("transient", f"{provider} stream was silent for too long") from None
    except httpx.HTTPError:
        return


async def _drained(chunks: AsyncGenerator[bytes]) -> None:
    """Read what little follows the end of an answer, so that its connection can be used again."""
    try:
        async with asyncio.timeout(DRAIN_S):
            async for _ in chunks:
                pass
    except (TimeoutError, UpstreamFailure):
        pass
