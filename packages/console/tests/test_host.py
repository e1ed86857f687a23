"""The page host over real sockets: files, refusals, and the bus behind `/ws`."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.http11 import Request, Response

from iii_console.host import PageHost, PageSettings

pytestmark = pytest.mark.anyio

SECRET = "only for this test"


@dataclass
class Bench:
    """A page host in front of an engine that answers every frame with the same frame, asked for `path`."""

    url: str
    paths: list[str]
    engine: Any

    @property
    def ws(self) -> str:
        return self.url.replace("http://", "ws://") + "ws"

    @property
    def origin(self) -> str:
        return self.url.rstrip("/")

    def page(self, query: str = "", **headers: str) -> connect:
        sent = {"Origin": self.origin} | headers
        return connect(self.ws + query, additional_headers=sent, max_size=None, proxy=None)


@asynccontextmanager
async def bench(token: str | None = None, host: str = "127.0.0.1") -> AsyncGenerator[Bench]:
    paths: list[str] = []

    async def echo(connection: ServerConnection) -> None:
        async for frame in connection:
            if frame == "leave":
                return
            await connection.send(frame)

    def admit(connection: ServerConnection, request: Request) -> Response | None:
        paths.append(request.path)
        assert "Origin" not in request.headers
        return connection.respond(401, "") if token is not None and f"token={token}" not in request.path else None

    async with serve(echo, "127.0.0.1", 0, process_request=admit, max_size=None) as engine:
        port = engine.sockets[0].getsockname()[1]
        page = PageHost(PageSettings(f"ws://127.0.0.1:{port}", host, 0, {"chat_policy": {}}))
        await page.start()
        await page.ready()
        try:
            yield Bench(page.url, paths, engine)
        finally:
            await page.drain()


async def close_code(connection: ClientConnection) -> int:
    async with asyncio.timeout(10):
        try:
            while True:
                await connection.recv()
        except ConnectionClosed as closed:
            assert closed.rcvd is not None
            return closed.rcvd.code


@pytest.mark.requirement("page.files")
async def test_a_file_is_not_sent_again_to_who_has_it() -> None:
    async with bench() as there, httpx.AsyncClient(base_url=there.url) as client:
        first = await client.get("/app.js")
        assert first.status_code == 200
        assert first.headers["Content-Type"].startswith("text/javascript")
        again = await client.get("/app.js", headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        other = await client.get("/app.js", headers={"If-None-Match": '"something else"'})
        assert other.content == first.content


@pytest.mark.requirement("page.policy")
@pytest.mark.parametrize("path", ["/", "/app.js", "/nothing", "/ws"])
async def test_every_answer_carries_the_headers_that_protect_it(path: str) -> None:
    async with bench() as there, httpx.AsyncClient(base_url=there.url) as client:
        headers = (await client.get(path)).headers
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.requirement("page.files")
async def test_other_paths_and_methods_are_refused() -> None:
    async with bench() as there, httpx.AsyncClient(base_url=there.url) as client:
        assert (await client.get("/nothing")).status_code == 404
        assert (await client.get("/%2e%2e/assets.py")).status_code == 404
        assert (await client.get("/ws")).status_code == 426
        assert (await client.post("/")).status_code == 405


@pytest.mark.requirement("page.bus")
async def test_frames_of_the_page_reach_the_engine_and_come_back() -> None:
    async with bench() as there, there.page() as page:
        large = json.dumps({"text": "x" * 3_000_000})
        for frame in ("{}", large, b"binary"):
            await page.send(frame)
            assert await page.recv() == frame
        assert there.paths == ["/"]


@pytest.mark.requirement("page.bus")
async def test_when_the_engine_ends_the_connection_the_page_hears_of_it() -> None:
    async with bench() as there, there.page() as page:
        await page.send("leave")
        assert await close_code(page) == 1000


@pytest.mark.requirement("page.bus")
async def test_without_an_engine_the_page_is_told_to_come_back() -> None:
    async with bench() as there:
        there.engine.close()
        await there.engine.wait_closed()
        async with there.page() as page:
            assert await close_code(page) == 4503


@pytest.mark.requirement("page.token")
async def test_the_page_gets_no_further_than_its_token() -> None:
    async with bench(token="right") as there:
        async with there.page() as page:
            assert await close_code(page) == 4401
        async with there.page("?token=right") as page:
            await page.send("{}")
            assert await page.recv() == "{}"


@pytest.mark.requirement("page.foreign.origin")
@pytest.mark.parametrize("origin", ["http://evil.test", "null"])
async def test_a_foreign_page_gets_neither_the_bus_nor_a_file(origin: str) -> None:
    async with bench() as there, httpx.AsyncClient(base_url=there.url) as client:
        with pytest.raises(InvalidStatus) as refused:
            async with there.page(Origin=origin):
                pass
        assert refused.value.response.status_code == 403
        assert there.paths == []
        assert (await client.get("/", headers={"Origin": origin})).status_code == 403


@pytest.mark.requirement("page.foreign.host")
async def test_a_name_that_was_rebound_gets_neither_the_bus_nor_a_file() -> None:
    async with bench() as there, httpx.AsyncClient(base_url=there.url) as client:
        rebound = "evil.test:" + there.url.rsplit(":", 1)[1].strip("/")
        assert (await client.get("/", headers={"Host": rebound})).status_code == 403
        with pytest.raises(InvalidStatus) as refused:
            async with there.page(Origin=f"http://{rebound}", Host=rebound):
                pass
        assert refused.value.response.status_code == 403


@pytest.mark.requirement("page.port")
async def test_a_port_that_was_asked_for_and_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        page = PageHost(PageSettings("ws://127.0.0.1:1", port=taken.getsockname()[1]))
        with pytest.raises(OSError, match="in use"):
            await page.start()
        await page.drain()


@pytest.mark.requirement("page.port")
async def test_without_a_wish_the_next_free_port_is_taken() -> None:
    hosts = [PageHost(PageSettings("ws://127.0.0.1:1")) for _ in range(2)]
    try:
        for host in hosts:
            await host.start()
        first, second = (int(host.url.rsplit(":", 1)[1].strip("/")) for host in hosts)
        assert 3113 <= first < second
    finally:
        for host in hosts:
            await host.drain()
