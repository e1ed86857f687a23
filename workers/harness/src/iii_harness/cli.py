"""`iii-harness`: the worker as a process of its own, connected to an engine (harness-loop 1.2, packaging 11, 12).

Exit codes: 0 after SIGTERM or SIGINT, 1 when the worker cannot start, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from iii_harness.app import install
from iii_harness.manifest import DESCRIPTION, NAME, manifest
from iii_harness.settings import BadConfig, seed_of_yaml
from iii_kit import logs
from iii_kit.errors import BusError
from iii_kit.sdk_bus import SdkBus, SdkOptions
from iii_kit.world import real_world

log = logs.logger(__name__)

DRAIN_S: Final = 0.25
"""What running work gets after SIGTERM: a process in a virtual machine is killed after half a second. What is cut off
is durable and goes on at the next start."""

CLOSE_S: Final = 0.15
"""What saying goodbye to the engine gets after that."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the worker until it is told to end."""
    asked = _parser().parse_args(arguments)
    if asked.manifest:
        sys.stdout.write(json.dumps(manifest(), indent=2) + "\n")
        return
    logs.configure(os.environ.get("III_LOG_LEVEL", "info"))
    try:
        seed = None if asked.config is None else seed_of_yaml(Path(asked.config).read_text("utf-8"))
        asyncio.run(_serve(asked.url, seed))
    except (BadConfig, OSError, UnicodeDecodeError) as error:
        _fail(f"--config {asked.config}: {error}")
    except BusError as error:
        _fail(str(error))


async def _serve(url: str | None, seed: dict[str, Any] | None) -> None:
    """Connect, become ready, end at the first signal."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    name, namespace = os.environ.get("III_WORKER_NAME") or NAME, os.environ.get("III_NAMESPACE")
    bus = SdkBus(SdkOptions(name, description=DESCRIPTION, url=url, namespace=namespace, telemetry=True))
    try:
        await run_until(stop, _work(bus, seed, namespace, stop))
    finally:
        closing = asyncio.ensure_future(bus.close())
        if stop.is_set():
            await asyncio.wait((closing,), timeout=CLOSE_S)
            _leave()
        await closing


async def _work(bus: SdkBus, seed: dict[str, Any] | None, namespace: str | None, stop: asyncio.Event) -> None:
    harness = install(bus, real_world(), seed, namespace=namespace)
    await bus.connected()
    await harness.ready()
    log.info("ready", worker=bus.worker_id)
    await stop.wait()
    await harness.drain(DRAIN_S / 2)


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("iii-harness", description=DESCRIPTION)
    parser.add_argument("--url", help="the engine's address; else III_URL, else ws://127.0.0.1:49134")
    parser.add_argument("--config", metavar="FILE", help="YAML that seeds the configuration entry `harness` once")
    parser.add_argument("--manifest", action="store_true", help="print name, version and defaults as JSON, and exit")
    return parser


def _leave() -> None:
    """End at once: threads of the SDK that wait for the engine, and the interpreter's own end, take too long."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _fail(text: str) -> None:
    sys.stderr.write(f"iii-harness: {text}\n")
    raise SystemExit(1)
