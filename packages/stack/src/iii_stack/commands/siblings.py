"""`iii-stack siblings`: session store, model router and providers as a process of their own beside an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from iii_stack.commands.parts import AcceptMissingLog, Engine, LogLevel, TellAsJson, engine_url, own_directory
from iii_stack.errors import StackError

if TYPE_CHECKING:
    from iii_kit.sdk_bus import SdkBus
    from iii_kit.world import World
    from iii_stack.siblings import Worker
    from iii_store import SqliteStore

GRACE_S = 3.0
"""How long workers of the same functions may take to appear (siblings 17.2)."""


def siblings(
    *,
    engine: Engine = None,
    data_dir: Annotated[
        Path | None, Parameter(help="Where they keep what is durable. Left out: `siblings` in that of the stack.")
    ] = None,
    grace: Annotated[
        float,
        Parameter(help="Seconds that others have to appear who serve the same functions.", validator=Number(gte=0)),
    ] = GRACE_S,
    log_level: LogLevel = "warning",
    accept_missing_log: AcceptMissingLog = False,
    as_json: TellAsJson = False,
) -> None:
    """Run session store, model router and providers beside an engine, until told to stop.

    A sibling whose functions another worker serves already stays off. The engine may come later, and may go and come
    back.

    Try:

        iii-stack up --without siblings

        iii-stack siblings --engine ws://127.0.0.1:49134
    """
    from iii_stack.apart import Apart, Part, run
    from iii_stack.siblings import FAMILIES, SIBLINGS

    part = Part(
        "siblings",
        "Embedded session store, model router and providers",
        FAMILIES,
        tuple(sibling.prefix for sibling in SIBLINGS),
        _install,
    )
    where = own_directory(data_dir, "siblings")
    run(part, Apart(engine_url(engine), where, grace, log_level, accept_missing_log, as_json))


def _install(bus: SdkBus, world: World, store: SqliteStore, served: frozenset[str]) -> Sequence[tuple[str, Worker]]:
    """Install those whose functions nobody serves."""
    from iii_kit.logs import logger
    from iii_stack.siblings import SIBLINGS

    yielding = [sibling for sibling in SIBLINGS if any(other.startswith(sibling.prefix) for other in served)]
    for sibling in yielding:
        logger(__name__).warning("sibling_stays_off", sibling=sibling.name, prefix=sibling.prefix)
    if len(yielding) == len(SIBLINGS):
        raise StackError(
            "served",
            "other workers serve everything that the siblings would",
            hint="start the stack with --without siblings",
        )
    return [(sibling.name, sibling.install(bus, world, store)) for sibling in SIBLINGS if sibling not in yielding]
