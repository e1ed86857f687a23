"""Timed calls (engine spec 15.2): the `cron` trigger.

One task per binding: wait for the next time, call, wait for the end of the call, compute the next time. So runs of one
binding never overlap and missed times are skipped. Nothing is stored; a binding told again replaces its schedule.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from iii_contracts.engine.cron import CRON, CronConfig
from iii_embedded.modules.firing import allowed
from iii_embedded.modules.schedules import BadExpression, Schedule, parse
from iii_kit.bindings import Bound
from iii_kit.bus import Binding, Bus, Json, Opts
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger
from iii_kit.world import World

LONGEST_SLEEP_S = 60.0
"""The wall clock is looked at again at least this often: it may be set while we sleep."""

RUN_LIMIT_MS = 24 * 60 * 60 * 1000
"""A run that takes longer is no longer waited for."""

_log = logger(__name__)


class Cron:
    """The timed bindings of one engine."""

    def __init__(self, bus: Bus, world: World) -> None:
        self._bus = bus
        self._clock = world.clock
        self._runs: dict[str, asyncio.Task[None]] = {}
        bus.provide(CRON, self)

    async def ready(self) -> None:
        """Works as soon as it is installed."""

    async def drain(self) -> None:
        """Stop every schedule."""
        self.renewed()

    async def bound(self, binding: Binding) -> None:
        """Start the schedule of a binding; one of the same id ends."""
        bound, schedule = _read(binding)
        await self.unbound(binding.id)
        task = asyncio.get_running_loop().create_task(self._run(bound, schedule))
        self._runs[binding.id] = task
        task.add_done_callback(_report)

    async def unbound(self, binding_id: str) -> None:
        """End the schedule of a binding."""
        task = self._runs.pop(binding_id, None)
        if task is not None:
            task.cancel()

    def renewed(self) -> None:
        """End all; what lives is told again."""
        for task in self._runs.values():
            task.cancel()
        self._runs.clear()

    async def _run(self, bound: Bound, schedule: Schedule) -> None:
        try:
            await self._follow(bound, schedule)
        except EpochEnded:
            return

    async def _follow(self, bound: Bound, schedule: Schedule) -> None:
        while (due := schedule.after(self._now())) is not None:
            while (left := (due - self._now()).total_seconds()) > 0:
                await self._clock.sleep(min(left, LONGEST_SLEEP_S))
            await self._fire(bound, due)

    async def _fire(self, bound: Bound, due: datetime) -> None:
        binding = bound.binding
        tick = {
            "trigger": "cron",
            "job_id": binding.id,
            "scheduled_time": due.isoformat(),
            "actual_time": self._now().isoformat(),
        }
        if await allowed(self._bus, bound, tick):
            await self._call(binding, tick)

    async def _call(self, binding: Binding, tick: Json) -> None:
        namespace = binding.namespace or "default"
        opts = Opts(timeout_ms=RUN_LIMIT_MS, metadata=binding.metadata, namespace=namespace)
        try:
            await self._bus.call(binding.function_id, tick, opts=opts)
        except EpochEnded:
            raise
        except BusError as error:
            _log.warning("cron_run_failed", function=binding.function_id, binding=binding.id, code=error.code)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)


def install(bus: Bus, world: World) -> Cron:
    """Provide `cron` on `bus`."""
    return Cron(bus, world)


def _read(binding: Binding) -> tuple[Bound, Schedule]:
    config, problem = CRON.parse_config(binding.config)
    if problem is not None:
        raise BusError("trigger_registration_failed", f"cron: {problem}")
    assert isinstance(config, CronConfig)
    expression = config.expression
    if not isinstance(expression, str) or not expression.strip():
        raise BusError("trigger_registration_failed", "Cron expression is required")
    try:
        return Bound(binding, config), parse(expression)
    except BadExpression as error:
        raise BusError("trigger_registration_failed", f"Invalid cron expression '{expression}': {error}") from error


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("cron_schedule_ended", exc_info=error)
