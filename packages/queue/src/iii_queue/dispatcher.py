"""Delivery of jobs: the effects around the pure schedule (siblings 9, engine spec 14.4).

The schedule is in memory and is read from the table at the start of every connection; it hears of a new job when its
commit is on disk and polls nothing. Claims and settlements are written without waiting: they ride along with the next
commit, in order, so that whatever a target writes afterwards is on disk no sooner than the claim.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache, partial
from typing import Any, cast
from urllib.parse import quote

from iii_contracts.engine.queue import QueueConfig
from iii_kit.bus import Caller, Opts
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger
from iii_kit.storage import Store, Tx
from iii_kit.trace import Carrier, received
from iii_kit.world import World
from iii_queue import tables
from iii_queue.points import QueuePoint
from iii_queue.schedule import Job, Schedule
from iii_queue.verdict import Absent, Retry, Verdict, judge

GRACE_S = 5.0
"""What deliveries may take to end when the provider drains; what still runs is delivered again at the next start."""

STORE_RETRY_MS = 1_000
"""Delay after a delivery that this provider's own storage did not let begin."""

NOT_CONNECTED = "not_connected"
"""Code of a call that its own bus could not send."""

_TAGS = ("iii.tag.kind", "iii.tag.display_name", "iii.tag.hidden")

_log = logger(__name__)


class Dispatcher:
    """Delivers the jobs of one store over one bus."""

    def __init__(self, bus: Caller, store: Store, world: World) -> None:
        self._bus = bus
        self._store = store
        self._world = world
        self._default = QueueConfig()
        self._schedule = Schedule(self._default.concurrency)
        self._configs: dict[str, QueueConfig] = {}
        self._loaded = False
        self._draining = False
        self._open = False
        self._deliveries: dict[asyncio.Task[None], Job] = {}
        self._marks: list[tables.Statement] = []
        self._written: asyncio.Future[None] | None = None
        self._timer: asyncio.Task[None] | None = None
        self._timer_due = 0

    @property
    def idle(self) -> bool:
        """No job runs, waits or is still to be settled on disk."""
        return not self._schedule and not self._marks and (self._written is None or self._written.done())

    async def begin(self) -> None:
        """Take over what is on disk and deliver from now on."""
        self._abandon()
        await self._store.write(self._recover)

    async def drain(self, grace_s: float) -> None:
        """Begin no delivery any more; those that run may end within the grace, the others wait for the next start."""
        self._draining = True
        self._pause()
        if self._deliveries:
            await asyncio.wait(list(self._deliveries), timeout=grace_s)
        self._abandon()
        self._flush()
        if self._written is not None:
            await asyncio.wait({self._written})

    def accepted(self, job: Job) -> None:
        """A job is on disk. Before the start it is not told: the start reads it."""
        if not self._loaded:
            return
        if not self._schedule.starts_soon(job):
            job.forget_data()
        if self._schedule.add(job):
            self._pump()

    def defined(self, queue: str, config: QueueConfig) -> None:
        """A definition is on disk: it holds from now on, and a job that waits for its function is tried at once."""
        self._configs[queue] = config
        self._schedule.define(queue, config.concurrency)
        self._schedule.hurry(queue)
        self._pump()
        self._arm()

    def _recover(self, tx: Tx) -> None:
        tables.recover(tx, self._world.clock.now_ms())
        tx.on_commit(partial(self._load, tables.definitions(tx), tables.waiting(tx)))

    def _load(self, configs: dict[str, QueueConfig], jobs: list[Job]) -> None:
        self._schedule = Schedule(self._default.concurrency)
        self._configs = configs
        for queue, config in configs.items():
            self._schedule.define(queue, config.concurrency)
        for job in jobs:
            self._schedule.add(job)
        self._loaded, self._open = True, not self._draining
        self._pump()
        self._arm()

    def _pump(self) -> None:
        """Start what may start."""
        if self._open:
            for job in self._schedule.take(self._world.clock.now_ms()):
                self._start(job)

    def _start(self, job: Job) -> None:
        task = asyncio.get_running_loop().create_task(self._work())
        self._deliveries[task] = job
        task.add_done_callback(self._ended)

    def _pause(self) -> None:
        """Begin no delivery. A lost connection is nobody's failed attempt: the next one begins anew from the table."""
        self._open = False
        self._disarm()

    def _arm(self) -> None:
        """Wake up when the next waiting job comes of age."""
        due = self._schedule.next_due() if self._open else None
        if due is None:
            self._disarm()
        elif self._timer is None or due < self._timer_due:
            self._disarm()
            self._timer_due = due
            self._timer = asyncio.get_running_loop().create_task(self._wake(due))

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _wake(self, due: int) -> None:
        while (left := due - self._world.clock.now_ms()) > 0:
            await self._world.clock.sleep(left / 1000)
        self._timer = None
        self._pump()
        self._arm()

    async def _work(self) -> None:
        """Deliver one job, and then, in the same task, another that may start when it is over."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        job = self._deliveries[task]
        while True:
            await self._deliver(job)
            if not self._open:
                return
            startable = self._schedule.take(self._world.clock.now_ms())
            if not startable:
                return
            job, *others = startable
            self._deliveries[task] = job
            for other in others:
                self._start(other)

    async def _deliver(self, job: Job) -> None:
        self._world.reach(QueuePoint.CLAIM)
        if job.fresh:
            self._mark(tables.claim(job))
        else:
            await self._store.write(partial(_execute, [tables.claim(job)]))
        self._world.reach(QueuePoint.DELIVER)
        data = job.data if job.has_data else self._store.peek(partial(tables.data_of, seq=job.seq))
        config = self._configs.get(job.queue, self._default)
        error = await self._call(job, config, data)
        self._world.reach(QueuePoint.SETTLE)
        self._settle(job, judge(job, self._configs.get(job.queue, self._default), error, self._world.clock.now_ms()))

    async def _call(self, job: Job, config: QueueConfig, data: Any) -> BusError | None:
        opts = Opts(timeout_ms=config.timeout_ms, namespace=job.namespace)
        try:
            if job.traceparent is None and job.baggage is None:
                await self._bus.call(job.function_id, data, opts=opts)
            else:
                with received(Carrier(job.traceparent, delivery_baggage(job.queue, job.function_id, job.baggage))):
                    await self._bus.call(job.function_id, data, opts=opts)
        except EpochEnded:
            self._pause()
            raise
        except BusError as error:
            if error.code == NOT_CONNECTED:
                self._pause()
                raise EpochEnded from error
            return error
        return None

    def _settle(self, job: Job, verdict: Verdict) -> None:
        self._mark(tables.settle(job, verdict, self._world.clock.now_ms()))
        match verdict:
            case Retry(attempt, not_before, _):
                job.attempt, job.absences = attempt, 0
                self._again(job, not_before)
            case Absent(not_before):
                job.absences += 1
                self._again(job, not_before)
            case _:
                self._schedule.done(job)
        self._world.reach(QueuePoint.SETTLED)

    def _again(self, job: Job, not_before: int) -> None:
        self._schedule.again(job, not_before)
        self._arm()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A delivery is over. What stopped it was no answer of its function, so the job is still to be delivered."""
        job = self._deliveries.pop(task, None)
        if job is None or task.cancelled():
            return
        error = task.exception()
        if isinstance(error, LookupError):
            _log.error("job_without_row", queue=job.queue, job=job.id)
            self._schedule.done(job)
            self._pump()
        elif isinstance(error, Exception) and not isinstance(error, EpochEnded) and self._open:
            _log.error("delivery_not_begun", queue=job.queue, job=job.id, exc_info=error)
            self._again(job, self._world.clock.now_ms() + STORE_RETRY_MS)
            self._pump()

    def _abandon(self) -> None:
        """Cut off the deliveries that run: their jobs wait again at their old place."""
        for task, job in self._deliveries.items():
            task.cancel()
            self._mark(tables.release(job))
        self._deliveries.clear()
        self._flush()

    def _mark(self, statement: tables.Statement) -> None:
        if not self._marks:
            asyncio.get_running_loop().call_soon(self._flush)
        self._marks.append(statement)

    def _flush(self) -> None:
        """Hand the marks of this turn of the loop to the writer, as one write that nobody waits for."""
        if not self._marks:
            return
        marks, self._marks = self._marks, []
        try:
            self._written = self._store.submit(partial(_execute, marks), lazy=True, told=_report)
        except Exception as error:
            _log.error("marks_not_written", marks=len(marks), exc_info=error)


@lru_cache(maxsize=1024)
def delivery_baggage(queue: str, function_id: str, baggage: str | None) -> str:
    """The baggage of a delivery: that of the enqueue, with the tags that say what the spans below it are."""
    kept = [entry for entry in (baggage or "").split(",") if entry and entry.split("=", 1)[0].strip() not in _TAGS]
    title = quote(f"{queue} {function_id}", safe=":")
    return ",".join([*kept, "iii.tag.kind=queue.process", f"iii.tag.display_name={title}"])


def _execute(statements: list[tables.Statement], tx: Tx) -> None:
    for sql, args in statements:
        tx.execute(sql, args)


def _report(_: None, error: BaseException | None) -> None:
    if error is not None:
        _log.error("marks_not_written", exc_info=error)
