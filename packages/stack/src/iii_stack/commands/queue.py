"""`iii-stack queue`: the queue provider as a process of its own beside an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from iii_stack.commands.parts import AcceptMissingLog, Engine, LogLevel, TellAsJson, engine_url, own_directory
from iii_stack.errors import StackError

if TYPE_CHECKING:
    from iii_kit.sdk_bus import SdkBus
    from iii_kit.world import World
    from iii_stack.siblings import Worker
    from iii_store import SqliteStore


def queue(
    *,
    engine: Engine = None,
    data_dir: Annotated[
        Path | None, Parameter(help="Where the jobs lie. Left out: `queue` in the data directory of the stack.")
    ] = None,
    log_level: LogLevel = "warning",
    accept_missing_log: AcceptMissingLog = False,
    as_json: TellAsJson = False,
) -> None:
    """Run the queue beside an engine, until told to stop. The engine may come later, and may go and come back.

    Try:

        iii-stack up --without queue

        iii-stack queue --engine ws://127.0.0.1:49134
    """
    from iii_queue import FAMILY
    from iii_stack.apart import Apart, Part, run

    part = Part("queue", "Queue provider", (FAMILY,), ("queue::define", "engine::queue::enqueue"), _install)
    where = own_directory(data_dir, "queue")
    run(part, Apart(engine_url(engine), where, 0.0, log_level, accept_missing_log, as_json))


def _install(bus: SdkBus, world: World, store: SqliteStore, served: frozenset[str]) -> Sequence[tuple[str, Worker]]:
    import iii_queue

    if served:
        raise StackError("served", "this engine has a queue already", hint="start the stack with --without queue")
    return [("queue", iii_queue.install(bus, store, world))]
