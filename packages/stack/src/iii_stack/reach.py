"""Finding a bus and connecting to it: `--bus`, else `III_URL`, else the running stack of the data directory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar
from urllib.parse import urlsplit

from cyclopts import Parameter

from iii_kit.errors import BusError
from iii_stack.data_directory import DataDirectory, locate
from iii_stack.errors import StackError

if TYPE_CHECKING:
    from iii_kit.sdk_bus import SdkBus
    from iii_stack.asking import Asking

T = TypeVar("T")


class Asks(Protocol):
    """Whoever can call functions, be it as a worker or not."""

    async def call(self, fn: str, data: Any) -> Any:
        """Call and wait for the result. Raises `BusError`."""
        ...


CONNECT_S = 5.0


@Parameter(name="*")
@dataclass(frozen=True)
class Reach:
    """Where the bus is.

    Attributes:
        bus: URL of the bus. Left out: III_URL, else the running stack of the data directory.
        data_dir: Data directory of the stack to talk to. Left out: III_STACK_DATA, else the user's data directory.
    """

    bus: Annotated[str | None, Parameter(name="--bus", env_var="III_URL")] = None
    data_dir: Annotated[Path | None, Parameter(name="--data-dir")] = None

    def url(self) -> str:
        """The URL of the bus. Raises `StackError` when none is named and no stack runs."""
        if self.bus is not None and self.bus.strip():
            return _checked(self.bus.strip())
        directory = DataDirectory(locate(self.data_dir))
        running = directory.running()
        if running is None:
            raise StackError(
                "no_stack",
                f"no stack runs on {directory.path}",
                hint="start one with `iii-stack up`, or name a bus with --bus URL",
            )
        return running["bus"]


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("ws", "wss") or not parts.hostname:
        raise StackError("bad_url", f"--bus {url}: not the URL of a bus", hint="it looks like ws://127.0.0.1:49134")
    return url


@asynccontextmanager
async def connected(reach: Reach) -> AsyncGenerator[SdkBus]:
    """A worker on the bus, gone at the end. Raises `StackError` when nobody answers."""
    url = reach.url()
    from iii_kit.logs import configure
    from iii_kit.sdk_bus import SdkBus, SdkOptions

    configure("error")
    bus = SdkBus(SdkOptions(f"iii-stack-cli-{os.getpid()}", "Command line", url=url, reconnect_max_ms=2_000))
    try:
        try:
            await bus.connected(CONNECT_S)
        except BusError as error:
            raise _no_bus(url, error.message) from None
        yield bus
    finally:
        await bus.close()


def _no_bus(url: str, why: str) -> StackError:
    hint = "start a stack with `iii-stack up`, or name another bus with --bus URL"
    return StackError("not_connected", f"no bus at {url} ({why})", hint=hint)


def with_bus(reach: Reach, work: Callable[[Asking], Awaitable[T]]) -> T:
    """Connect, do `work` and disconnect: what a command that makes a few calls is made of."""
    url = reach.url()
    # Here, so that help and errors of usage do without.
    from iii_stack.asking import NotConnected, asking

    async def run() -> T:
        try:
            async with asking(url) as bus:
                return await work(bus)
        except NotConnected as error:
            raise _no_bus(url, str(error)) from None

    return asyncio.run(run())


def call(reach: Reach, fn: str, data: Any) -> Any:
    """Make one call and return its answer."""
    return with_bus(reach, lambda bus: bus.call(fn, data))


async def check_exists(bus: Asks, session_id: str) -> None:
    """Raises `StackError` when there is no such session."""
    if await bus.call("session::get", {"session_id": session_id}) is None:
        raise StackError("session/not_found", f"no session {session_id}", hint="see `iii-stack sessions`")
