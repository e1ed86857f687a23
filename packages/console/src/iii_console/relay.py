"""The bus for the page: frames of one browser connection to the engine and back (siblings 15, `/ws`).

The engine sees the page as any other worker. A token travels in the query of `/ws`, as engine spec 2.2 keeps it; the
page host itself holds none, so whoever opens the page gets no further than with the bus itself.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from iii_kit.encoding import MAX_BYTES

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection
    from websockets.asyncio.server import ServerConnection

UNAUTHORIZED = 4401
"""The engine wants a token and did not get it."""

UNREACHABLE = 4503
"""There is no engine to talk to."""

OPEN_S = 10.0
FAREWELL_S = 1.0


async def relay(page: ServerConnection, engine_url: str, query: str) -> None:
    """Carry frames both ways until either side ends; the other side is then closed as well."""
    from websockets.asyncio.client import connect

    url = urlsplit(engine_url)._replace(query=query).geturl()
    try:
        engine = await connect(
            url,
            compression=None,
            max_size=MAX_BYTES,
            open_timeout=OPEN_S,
            close_timeout=FAREWELL_S,
            ping_interval=None,
            user_agent_header=None,
            proxy=None,
        )
    except InvalidStatus as refused:
        status = refused.response.status_code
        await page.close(*((UNAUTHORIZED, "token") if status == 401 else (UNREACHABLE, f"engine answered {status}")))
        return
    except (OSError, TimeoutError, InvalidHandshake):
        await page.close(UNREACHABLE, "no engine")
        return
    async with engine:
        await _both(page, engine)


async def _both(page: ServerConnection, engine: ClientConnection) -> None:
    ways = {asyncio.create_task(_carry(page, engine)), asyncio.create_task(_carry(engine, page))}
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
    await page.close()


async def _carry(source: ServerConnection | ClientConnection, target: ServerConnection | ClientConnection) -> None:
    """Frames of one side, one after the other: a slow reader holds its writer back."""
    try:
        async for frame in source:
            await target.send(frame)
    except ConnectionClosed:
        pass
