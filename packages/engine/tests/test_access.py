"""Who may connect, and to what: origins, the token, loopback, paths (engine spec 2.2, 4.8)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from iii_embedded import EngineSettings
from iii_embedded.access import Access, Exposed
from iii_testing.embedded import embedded

pytestmark = pytest.mark.anyio

PATHS = ("/", "/otel", "/ws/channels/x?key=k&dir=read")


async def status(url: str, **options: Any) -> int:
    """101 when the handshake succeeds, else the status that refused it."""
    try:
        async with connect(url, compression=None, **options):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


@pytest.mark.requirement("engine.access.origin")
async def test_pages_of_other_origins_are_refused_on_every_path() -> None:
    settings = EngineSettings(port=0, origins=("http://127.0.0.1:3113",))
    async with embedded(settings=settings) as stack:
        port = stack.engine.port
        evil = ("http://evil.example", f"http://127.0.0.1:{port}", f"http://localhost:{port}", "null", "file://")
        for origin in evil:
            for path in PATHS:
                assert await status(stack.url + path, origin=origin) == 403
        assert await status(stack.url, origin="http://127.0.0.1:3113") == 101
        assert await status(stack.url) == 101


@pytest.mark.requirement("engine.access.token")
async def test_without_the_token_every_path_is_refused() -> None:
    async with embedded(settings=EngineSettings(port=0, token="s3cret-ü")) as stack:
        wrong = [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret"}, {"Authorization": "Basic s3cret"}]
        for headers in wrong:
            for path in PATHS:
                assert await status(stack.url + path, additional_headers=headers) == 401
        assert await status(stack.url + "/?token=wrong") == 401
        assert await status(stack.url + "/?token=s3cret-%C3%BC") == 101
        assert await status(stack.url + "/otel?token=s3cret-%C3%BC") == 101
    async with embedded(settings=EngineSettings(port=0, token="s3cret")) as stack:
        assert await status(stack.url, additional_headers={"Authorization": "bearer  s3cret"}) == 101


@pytest.mark.requirement("engine.access.loopback")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_beyond_loopback_a_token_is_needed(host: str) -> None:
    with pytest.raises(Exposed, match="token"):
        Access(host, None, ())
    Access(host, "token", ())


@pytest.mark.requirement("engine.access.loopback")
@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    Access(host, None, ())


@pytest.mark.requirement("engine.server.paths")
async def test_other_paths_and_plain_requests_are_refused() -> None:
    async with embedded(listening=True) as stack:
        assert await status(stack.url + "/nothing") == 404
        assert await status(stack.url + "/ws/channels/x?key=k&dir=read") == 404
        assert await status(stack.url + "/ws/channels/x?key=k&dir=both") == 400
        assert await status(stack.url + "/ws/channels/x?dir=read") == 400
        async with httpx.AsyncClient() as http:
            assert (await http.get(stack.url.replace("ws:", "http:") + "/")).status_code == 400
        with pytest.raises(OSError, match="address already in use"):
            async with embedded(settings=EngineSettings(port=stack.engine.port)):
                pass
