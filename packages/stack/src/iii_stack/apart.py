"""A part of the stack as a process of its own beside an engine (design, "Separate workers"; siblings 17.2).

It keeps a data directory of its own, waits for its engine, yields to workers that serve the same functions already, and
ends like the stack: what is not finished is durable and goes on at the next start.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from iii_kit import event_loop
from iii_kit.errors import BusError
from iii_kit.logs import configure, logger
from iii_kit.sdk_bus import SdkBus, SdkOptions
from iii_kit.world import World, real_world
from iii_stack.data_directory import DataDirectory
from iii_stack.database import open_store
from iii_stack.errors import StackError
from iii_stack.output import console, print_json
from iii_stack.siblings import Worker
from iii_store import SqliteStore
from iii_store.schema import Family

RECONNECT_FIRST_MS = 100
RECONNECT_LONGEST_MS = 2_000
"""An engine that is started again is found at once."""

PATIENCE_S = 2.0
"""How long the engine may be silent before it is said that it is waited for."""

LOOK_S = 0.25

NAME_TAKEN = "WORKER_NAMESPACE_CONFLICT"
CONNECTION_LOST = ("epoch_ended", "not_connected")

log = logger(__name__)

Install = Callable[[SdkBus, World, SqliteStore, frozenset[str]], Sequence[tuple[str, Worker]]]
"""Installs the part on a bus, given the ids of the functions that others serve. Raises `StackError`."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part that can stand alone. `watched` are the prefixes whose functions it serves."""

    name: str
    description: str
    families: tuple[Family, ...]
    watched: tuple[str, ...]
    install: Install


@dataclass(frozen=True, slots=True)
class Apart:
    """How one is run."""

    engine: str
    data_dir: Path
    grace_s: float = 0.0
    log_level: str = "warning"
    accept_missing_log: bool = False
    as_json: bool = False


def run(part: Part, how: Apart) -> None:
    """Run `part` until it is told to stop."""
    configure(how.log_level)
    directory = DataDirectory(how.data_dir)
    directory.open()
    try:
        event_loop.run(_run(part, how, directory))
    finally:
        directory.close()


async def _run(part: Part, how: Apart, directory: DataDirectory) -> None:
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told_to_stop.set)
    store = open_store(directory, part.families, accept_missing_log=how.accept_missing_log)
    options = SdkOptions(
        part.name,
        part.description,
        url=how.engine,
        reconnect_initial_ms=RECONNECT_FIRST_MS,
        reconnect_max_ms=RECONNECT_LONGEST_MS,
    )
    bus = SdkBus(options, store)
    workers: list[tuple[str, Worker]] = []
    try:
        await _until_stopped(told_to_stop, _serve(part, how, bus, store, workers))
    finally:
        for name, worker in reversed(workers):
            try:
                await worker.drain()
            except Exception as error:
                log.error("drain_failed", part=name, error=str(error))
        await bus.close()
        store.close()


async def _until_stopped(stop: asyncio.Event, serving: Awaitable[None]) -> None:
    """Serve until told to stop, or until that fails."""
    working = asyncio.ensure_future(serving)
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


async def _serve(part: Part, how: Apart, bus: SdkBus, store: SqliteStore, workers: list[tuple[str, Worker]]) -> None:
    await _connected(part, bus, how)
    workers.extend(part.install(bus, real_world(), store, await _served_by_others(part, how, bus)))
    for _, worker in workers:
        await worker.ready()
    _tell(part, how)
    try:
        await bus.refused()
    except BusError as error:
        raise _refused(part, how, error) from None


async def _connected(part: Part, bus: SdkBus, how: Apart) -> None:
    """Wait for the engine, and say so when it takes longer."""
    told = False
    while True:
        try:
            await bus.connected(PATIENCE_S)
            return
        except BusError as error:
            if error.code != "not_connected":
                raise _refused(part, how, error) from None
        if not told:
            console(stderr=True).print(f"waiting for an engine at {how.engine}")
            told = True


async def _served_by_others(part: Part, how: Apart, bus: SdkBus) -> frozenset[str]:
    """Functions of this part that are served already; late starters get the grace."""
    clock = real_world().clock
    deadline = clock.monotonic() + how.grace_s
    while True:
        try:
            listed = await bus.call("engine::functions::list", {"include_internal": True})
        except BusError as error:
            if error.code not in CONNECTION_LOST:
                raise
            await _connected(part, bus, how)
            continue
        found = frozenset(
            row["function_id"] for row in listed["functions"] if row["function_id"].startswith(part.watched)
        )
        left = deadline - clock.monotonic()
        if left <= 0:
            return found
        await clock.sleep(min(left, LOOK_S))


def _refused(part: Part, how: Apart, error: BusError) -> StackError:
    """Why the engine wants nothing of this worker, in terms of what can be done about it."""
    if error.code != NAME_TAKEN:
        return StackError(error.code, f"the engine at {how.engine} refuses this worker: {error.message}")
    return StackError(
        "served",
        f"the engine at {how.engine} has a worker named {part.name} already",
        hint=f"end that one, or start the stack with --without {part.name}",
    )


def _tell(part: Part, how: Apart) -> None:
    """Say that it works."""
    if how.as_json:
        print_json({"ready": True, "part": part.name, "engine": how.engine, "pid": os.getpid()}, one_line=True)
        return
    from rich.text import Text

    out = console()
    out.print(Text.assemble((f"{part.name} is up", "bold green"), f"  engine {how.engine}  data {how.data_dir}"))
    out.print(Text("Ctrl-C stops it; nothing is lost.", style="dim"))
