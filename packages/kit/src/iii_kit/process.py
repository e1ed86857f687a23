"""A worker as a process of its own: connect, become ready, end at the first signal (packaging 11, 12).

Exit codes: 0 after SIGTERM or SIGINT, 1 when the worker cannot start. A process in a virtual machine is killed half a
second after it was told to end, so everything here fits in that.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn, Protocol

from iii_kit import event_loop, logs
from iii_kit.errors import BusError
from iii_kit.sdk_bus import SdkBus, SdkOptions

log = logs.logger(__name__)

DRAIN_S: Final = 0.25
"""What running work gets after a signal. What is cut off is durable and goes on at the next start."""

CLOSE_S: Final = 0.15
"""What saying goodbye to the engine gets after that."""


RECONNECT_FIRST_MS: Final = 100
RECONNECT_LONGEST_MS: Final = 2_000
"""An engine that is started again is found at once."""

PATIENCE_S: Final = 5.0
"""How long the engine may be silent before the log says that it is waited for."""


class Installed(Protocol):
    """A worker on its bus."""

    async def ready(self) -> None:
        """Return when it works; raise when it never will."""
        ...

    async def drain(self, grace_s: float) -> None:
        """Take nothing more on; wait at most that long for what runs."""
        ...


def options(name: str, description: str, url: str | None) -> SdkOptions:
    """How the process connects: the name and the namespace that its surroundings give it go before its own."""
    return SdkOptions(
        os.environ.get("III_WORKER_NAME") or name,
        description=description,
        url=url,
        namespace=os.environ.get("III_NAMESPACE"),
        telemetry=True,
        reconnect_initial_ms=RECONNECT_FIRST_MS,
        reconnect_max_ms=RECONNECT_LONGEST_MS,
    )


def run(program: str, connect: SdkOptions, install: Callable[[SdkBus], Installed]) -> None:
    """Be the worker until a signal. Exits with 1 when it cannot work: the text says what must change."""
    try:
        event_loop.run(_serve(connect, install))
    except (BusError, ValueError) as error:
        fail(program, str(error))


async def _serve(connect: SdkOptions, install: Callable[[SdkBus], Installed]) -> None:
    """Connect, become ready, end at the first signal."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    bus = SdkBus(connect)
    try:
        await run_until(stop, unless_refused(bus, _work(bus, install, stop)))
    finally:
        closing = asyncio.ensure_future(bus.close())
        if stop.is_set():
            await asyncio.wait((closing,), timeout=CLOSE_S)
            _leave()
        await closing


async def _work(bus: SdkBus, install: Callable[[SdkBus], Installed], stop: asyncio.Event) -> None:
    worker = install(bus)
    await _connected(bus)
    await worker.ready()
    log.info("ready", worker=bus.worker_id)
    await stop.wait()
    await worker.drain(DRAIN_S / 2)


async def _connected(bus: SdkBus) -> None:
    """Wait for the engine, which may come later than we do."""
    while True:
        try:
            await bus.connected(PATIENCE_S)
            return
        except BusError as error:
            if error.code != "not_connected":
                raise
            log.warning("waiting", waits_for="engine", problem=error.message)


async def unless_refused(bus: SdkBus, work: Coroutine[Any, Any, None]) -> None:
    """Run `work`, unless the engine refuses this worker for good, since another one has its name: raises that."""
    working, refused = asyncio.ensure_future(work), asyncio.ensure_future(bus.refused())
    try:
        await asyncio.wait((working, refused), return_when=asyncio.FIRST_COMPLETED)
        await (working if working.done() else refused)
    finally:
        for task in (working, refused):
            task.cancel()
        await asyncio.gather(working, refused, return_exceptions=True)


async def run_until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run `work`; a signal before it is ready ends it at once, after that it ends by itself."""
    working, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    _, late = await asyncio.wait((working,), timeout=DRAIN_S)
    if late:
        working.cancel()
        return
    await working


def fail(program: str, text: str) -> NoReturn:
    """Say why the process cannot work, and end it."""
    sys.stderr.write(f"{program}: {text}\n")
    raise SystemExit(1)


def _leave() -> None:
    """End at once: threads of the SDK that wait for the engine, and the interpreter's own end, take too long."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
