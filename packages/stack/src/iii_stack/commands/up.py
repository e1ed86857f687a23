"""`iii-stack up`: run the stack in this terminal until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import os
import shlex
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from iii_kit import event_loop
from iii_stack.commands.parts import AcceptMissingLog, LogLevel
from iii_stack.data_directory import DataDirectory, locate, usual
from iii_stack.errors import StackError
from iii_stack.output import console, print_json

if TYPE_CHECKING:
    from iii_stack.compose import StackSettings

COLLECTOR = (50_000, 20, 100)
"""When garbage is looked for while the stack runs. A step makes thousands of objects and hardly a cycle: looking as
often as Python does by itself takes a tenth of its time."""

NAME = "iii-stack"

STARTED_BY = {
    "siblings": "iii-stack siblings --engine {url}",
    "queue": "iii-stack queue --engine {url}",
    "harness": "iii-harness --url {url}",
}
"""How a part is started that was left out."""

PORTS = Number(gte=0, lte=65_535)


def up(
    *,
    host: Annotated[str, Parameter(help="Address to listen on. Beyond loopback III_TOKEN must be set.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port of the bus; 0 takes any free one.", validator=PORTS)] = 49134,
    page_port: Annotated[
        int | None,
        Parameter(help="Port of the page; 0 takes any free one. Left out: 3113 or the next free one.", validator=PORTS),
    ] = None,
    data_dir: Annotated[
        Path | None,
        Parameter(
            help="Where everything durable lies. Left out: III_STACK_DATA, else the user's data directory.",
        ),
    ] = None,
    without: Annotated[
        str, Parameter(help="Parts to leave out: any of harness,eval,siblings,queue,page.", show_default=False)
    ] = "",
    log_level: LogLevel = "warning",
    accept_missing_log: AcceptMissingLog = False,
    as_json: Annotated[
        bool, Parameter(name="--json", negative=(), show_default=False, help="Tell where the stack is as JSON.")
    ] = False,
) -> None:
    """Start the stack and keep it running. SIGINT or SIGTERM ends it; what was not finished goes on at the next start.

    With --json the first line on stdout tells that every worker is ready, and where.

    Try:

        iii-stack up

        iii-stack up --port 0 --data-dir ./data --json
    """
    gc.disable()  # what a start allocates stays: looking for garbage in it would only take time
    try:
        settings = _settings(host, port, page_port, without, accept_missing_log=accept_missing_log)
        from iii_kit.logs import configure

        configure(log_level)
        directory = DataDirectory(locate(data_dir))
        directory.open()
        try:
            event_loop.run(_run(directory, settings, as_json=as_json))
        finally:
            directory.close()
    finally:
        gc.enable()


def _settings(host: str, port: int, page_port: int | None, without: str, *, accept_missing_log: bool) -> StackSettings:
    from iii_stack.compose import PARTS, TOKEN_VARIABLE, StackSettings

    left_out = frozenset(part.strip() for part in without.split(",") if part.strip())
    unknown = sorted(left_out - set(PARTS))
    if unknown:
        raise StackError("unknown_part", f"--without {unknown[0]}: no such part", hint=f"any of {','.join(PARTS)}")
    token = os.environ.get(TOKEN_VARIABLE, "").strip() or None
    return StackSettings(host, port, page_port, left_out, token, accept_missing_log)


async def _run(directory: DataDirectory, settings: StackSettings, *, as_json: bool) -> None:
    from iii_kit.world import real_world
    from iii_stack.compose import Stack

    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told_to_stop.set)
    stack = Stack(real_world(), directory, settings)
    try:
        starting = asyncio.ensure_future(stack.start())
        stopping = asyncio.ensure_future(told_to_stop.wait())
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            await starting
            gc.freeze()
            gc.set_threshold(*COLLECTOR)
            gc.enable()
            running = {"bus": stack.url, "page": stack.page_url, "pid": os.getpid()}
            directory.announce(running)
            tell(running, directory, as_json=as_json)
            _tell_waiting(stack.waiting, stack.url)
            await asyncio.gather(stack.engine.warm_up(), stopping)
        else:
            starting.cancel()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        await stack.drain()


def tell(running: dict[str, Any], directory: DataDirectory, *, as_json: bool) -> None:
    """Say where the stack is, and to people what to type next."""
    if as_json:
        print_json({"ready": True, **running}, one_line=True)
        return
    from rich.text import Text

    out = console()
    out.print(Text.assemble(("iii stack is up", "bold green"), f"  bus {running['bus']}  data {directory.path}"))
    if running["page"] is not None:
        out.print(Text.assemble("Open the page:           ", (running["page"], "bold")))
    out.print(Text("Now, in another terminal:" if running["page"] is None else "Or, in another terminal:"))
    program, where = _program(), _where(directory)
    for command in ("chat", "sessions", "doctor"):
        said = ' "What can you do here?"' if command == "chat" else ""
        # Never wrapped: a line that is copied must stay one line.
        out.print(Text(f"  {program} {command}{where}{said}", style="bold"), soft_wrap=True)
    out.print(Text("Ctrl-C stops it; nothing is lost.", style="dim"))


def _tell_waiting(waiting: dict[str, frozenset[str]], url: str) -> None:
    """Say on stderr which parts wait for parts that run elsewhere, and how to start those."""
    from rich.text import Text

    out = console(stderr=True)
    for part, others in waiting.items():
        started = " and ".join(f"`{STARTED_BY[other].format(url=url)}`" for other in sorted(others))
        out.print(Text(f"{part} waits for {' and '.join(sorted(others))}: start {started}"))


def _program() -> str:
    """How this program is called from a shell: by its name where that finds it, else as it was called here."""
    called = sys.argv[0]
    found = shutil.which(NAME)
    return NAME if found is not None and Path(found).resolve() == Path(called).resolve() else shlex.quote(called)


def _where(directory: DataDirectory) -> str:
    """The option by which other commands find a stack that is not where they look by themselves."""
    return "" if directory.path == usual() else f" --data-dir {shlex.quote(str(directory.path))}"
