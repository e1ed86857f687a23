"""The whole stack in one process: which parts, in which order they start and end (siblings 17.3, design "Layout").

The order of start-up is that of the specification; the end goes the other way round. Every part sits on a bus of its
own, as it would over a socket.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
from dataclasses import dataclass, field

import iii_eval.app as evaluation
import iii_harness.app as harness
import iii_queue as queue
from iii_console.host import PageHost, PageSettings
from iii_contracts.policy import CHAT_POLICY
from iii_embedded import modules
from iii_embedded.engine import Engine, EngineSettings
from iii_embedded.local_bus import LocalBus
from iii_kit.logs import logger
from iii_kit.world import World
from iii_stack import siblings
from iii_stack.data_directory import DataDirectory
from iii_stack.database import open_store
from iii_stack.errors import StackError
from iii_stack.siblings import SIBLINGS, Worker
from iii_store.schema import Family

PARTS = ("harness", "eval", "siblings", "queue", "page")
"""Parts that can be left out, so that a connected worker may take their place."""

NEEDED_BY = {"harness": frozenset({"siblings", "queue"})}
"""Parts that a part cannot be ready without."""

READY_S = 60.0
"""How long the parts may take to become ready."""

TOKEN_VARIABLE = "III_TOKEN"

FAMILIES: tuple[Family, ...] = (*modules.FAMILIES, queue.FAMILY, *siblings.FAMILIES)
"""The tables of every part; they exist whether or not the part runs."""

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class StackSettings:
    """What `iii-stack up` was asked for."""

    host: str = "127.0.0.1"
    port: int = 49134
    page_port: int | None = None
    """None: the usual port of the page, or the next free one."""
    without: frozenset[str] = frozenset()
    token: str | None = field(default=None, repr=False)
    accept_missing_log: bool = False
    stepwise: bool = False
    """Make the calls of a sequence one by one, as over a socket."""


class Stack:
    """One stack over one data directory, which the caller has opened."""

    def __init__(self, world: World, directory: DataDirectory, settings: StackSettings) -> None:
        _check_exposure(settings)
        self._world = world
        self._settings = settings
        self._workers: list[tuple[str, Worker]] = []
        self._late: set[asyncio.Task[None]] = set()
        self._page: PageHost | None = None
        self.store = open_store(directory, FAMILIES, accept_missing_log=settings.accept_missing_log)
        self.engine = Engine(
            world, self.store, EngineSettings(host=settings.host, port=settings.port, token=settings.token)
        )

    @property
    def url(self) -> str:
        """Where the bus is."""
        return f"ws://{_for_url(self._settings.host)}:{self.engine.port}"

    @property
    def page_url(self) -> str | None:
        """Where the page is; None when it was left out."""
        return None if self._page is None else self._page.url

    async def start(self) -> None:
        """Start every part and return when all are ready. Raises `StackError` when one cannot."""
        try:
            await self.engine.start()
        except OSError as error:
            raise _not_listening(error, self._settings.host, self._settings.port, "--port") from None
        for module in modules.install(lambda name: self._attach(name, builtin=True), self._world):
            self._workers.append((type(module).__name__, module))
        self._install_parts()
        await self._all_ready()
        if "page" not in self._settings.without:
            await self._open_page()

    def waits_for(self, name: str) -> frozenset[str]:
        """The parts that `name` needs and that were left out here."""
        return NEEDED_BY.get(name, frozenset[str]()) & self._settings.without

    @property
    def waiting(self) -> dict[str, frozenset[str]]:
        """Parts that get ready when others, which run elsewhere, are there; with the names of those."""
        return {name: self.waits_for(name) for name, _ in self._workers if self.waits_for(name)}

    async def drain(self) -> None:
        """End in the opposite order; what is not finished is durable and goes on at the next start."""
        for task in self._late:
            task.cancel()
        for name, worker in reversed(self._workers):
            try:
                await worker.drain()
            except Exception as error:
                log.error("drain_failed", part=name, error=str(error))
        await self.engine.close()
        self.store.close()

    def _install_parts(self) -> None:
        without = self._settings.without
        if "queue" not in without:
            self._add("queue", queue.install(self._attach("queue", builtin=True), self.store, self._world))
        if "siblings" not in without:
            for sibling in SIBLINGS:
                bus = self._attach(sibling.worker)
                self._add(sibling.name, sibling.install(bus, self._world, self.store))
        if "harness" not in without:
            self._add("harness", harness.install(self._attach("harness"), self._world))
        if "eval" not in without:
            self._add("eval", evaluation.install(self._attach("eval"), self._world))

    async def _open_page(self) -> None:
        settings = PageSettings(
            self._reachable_url,
            self._settings.host,
            self._settings.page_port,
            {"chat_policy": CHAT_POLICY.model_dump()},
        )
        page = PageHost(settings)
        try:
            await page.start()
        except OSError as error:
            raise _not_listening(error, self._settings.host, self._settings.page_port or 0, "--page-port") from None
        self._page = page
        self._add("page", page)

    @property
    def _reachable_url(self) -> str:
        """Where this process reaches its own bus, also when it listens on every address."""
        host = self._settings.host
        return f"ws://127.0.0.1:{self.engine.port}" if host in ("0.0.0.0", "") else self.url

    def _add(self, name: str, worker: Worker) -> None:
        self._workers.append((name, worker))

    def _attach(self, name: str, *, builtin: bool = False) -> LocalBus:
        return self.engine.attach(name, builtin=builtin, stepwise=self._settings.stepwise)

    async def _all_ready(self) -> None:
        """Wait until every part works; what needs a part that runs elsewhere gets ready when that one is there."""
        for name, worker in self._workers:
            if self.waits_for(name):
                self._late.add(asyncio.ensure_future(_ready_later(name, worker)))
                continue
            try:
                async with asyncio.timeout(READY_S):
                    await worker.ready()
            except TimeoutError:
                raise StackError("not_ready", f"{name} was not ready within {READY_S:g} s") from None
            except Exception as error:
                raise StackError("not_ready", f"{name} did not start: {error}") from error


async def _ready_later(name: str, worker: Worker) -> None:
    try:
        await worker.ready()
    except Exception as error:
        log.error("part_failed", part=name, error=str(error))
    else:
        log.warning("ready", part=name)


def _check_exposure(settings: StackSettings) -> None:
    if settings.token is None and not _is_loopback(settings.host):
        raise StackError(
            "exposed",
            f"{settings.host} can be reached from other machines, and whoever reaches the bus can do everything",
            hint=f"set {TOKEN_VARIABLE} to a secret that workers present, or stay on 127.0.0.1",
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _not_listening(error: OSError, host: str, port: int, option: str) -> StackError:
    place = f"port {port} of {host}"
    if error.errno == errno.EADDRINUSE:
        hint = f"name another one with {option}, or {option} 0 for any free one"
        return StackError("port_in_use", f"{place} is in use", hint=hint)
    return StackError(
        "not_listening",
        f"cannot listen on {place}: {error.strerror}",
        hint=f"name another address with --host and {option}",
    )


def _for_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
