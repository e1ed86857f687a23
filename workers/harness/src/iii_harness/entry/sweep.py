"""`harness::sweep-pending` and the orphan redrive: no turn stays without a queue entry (harness-loop 3.10, 9.6).

Right after a start nothing executes here, so every running turn gets its step enqueued at once: the step guard drops
what the queue redelivers anyhow. Later only turns that have not moved for two minutes are touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from iii_contracts.harness.configuration import HarnessConfig
from iii_contracts.harness.upkeep import SweepRequest
from iii_harness.durable_sequence import SequenceFailed, perform
from iii_harness.entry.idempotency import IdemRow
from iii_harness.entry.points import EntryPoint
from iii_harness.locks import Locks
from iii_harness.record import TurnRecord
from iii_harness.signals import ExecutingSteps
from iii_harness.state_rows import StateRows
from iii_harness.turn_queue import enqueue_call
from iii_harness.turn_store import TurnStore
from iii_kit.bus import Caller, Invocation
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger
from iii_kit.world import World

log = logger(__name__)

ORPHAN_AGE_MS = 120_000
FIRST_PASS_S = 30.0
PASS_S = 120.0
CLEAN_UP_MS = 3_600_000
DELETES = 200
"""Idempotency rows deleted in one sequence."""


class Sweeper:
    """Finds turns that nobody moves, and forgets keys that are too old and prompts without a turn."""

    def __init__(
        self,
        bus: Caller,
        world: World,
        turns: TurnStore,
        locks: Locks,
        executing: ExecutingSteps,
        idem: StateRows[IdemRow],
        config: Callable[[], HarnessConfig],
    ) -> None:
        self._bus = bus
        self._world = world
        self._turns = turns
        self._locks = locks
        self._executing = executing
        self._idem = idem
        self._config = config
        self._cleaned_at: int | None = None

    async def sweep(self, _: SweepRequest, __: Invocation) -> dict[str, Any]:
        """One pass over everything; a part that fails does not hide what the others did."""
        redriven = 0
        try:
            redriven = await self.redrive()
        except EpochEnded:
            raise
        except BusError as error:
            log.warning("orphans_not_redriven", error=str(error))
        collected = await self._clean_up()
        return {"ok": True, "resolved": 0, "redriven": redriven, "converted": 0, "prompts_collected": collected}

    async def redrive(self, *, whatever_age: bool = False) -> int:
        """Enqueue the current step of running turns that do not move; returns how many."""
        candidates = [record for record in await self._turns.running() if self._lost(record, whatever_age)]
        done = await asyncio.gather(*(self._redrive(record, whatever_age) for record in candidates))
        for session_id in await self._turns.indexed():
            if not self._turns.lives(session_id):
                async with self._locks.hold(session_id):
                    await self._turns.retire(session_id)
        return sum(done)

    async def passes(self) -> None:
        """The background loop: first after half a minute, then every two."""
        await self._world.clock.sleep(FIRST_PASS_S)
        while True:
            try:
                await self.redrive()
            except EpochEnded:
                raise
            except BusError as error:
                log.warning("orphans_not_redriven", error=str(error))
            await self._world.clock.sleep(PASS_S)

    def _lost(self, record: TurnRecord, whatever_age: bool) -> bool:
        if record.status != "running" or self._executing.executing(record.session_id):
            return False
        return whatever_age or self._world.clock.now_ms() - record.updated_at >= ORPHAN_AGE_MS

    async def _redrive(self, seen: TurnRecord, whatever_age: bool) -> bool:
        async with self._locks.hold(seen.session_id):
            record = await self._turns.load(seen.session_id)
            if record is None or record.turn_id != seen.turn_id or not self._lost(record, whatever_age):
                return False
            touched = replace(record, updated_at=self._world.clock.now_ms())
            writes = self._turns.writes(touched)
            self._world.reach(EntryPoint.BEFORE_REDRIVE)
            try:
                await perform(self._bus, self._world.clock, [enqueue_call(touched), *writes])
            except SequenceFailed as failed:
                self._turns.forget(record.session_id)
                log.warning("turn_not_redriven", session=record.session_id, error=str(failed.cause))
                return failed.at > 0
            self._turns.saved(touched)
            self._world.reach(EntryPoint.AFTER_REDRIVE)
            return True

    async def _clean_up(self) -> int:
        """At most once an hour: old idempotency rows and prompts that nobody uses go; returns how many prompts."""
        now = self._world.clock.now_ms()
        if self._cleaned_at is not None and now - self._cleaned_at < CLEAN_UP_MS:
            return 0
        self._cleaned_at = now
        try:
            await self._forget_old_keys(now)
            return await self._turns.collect_prompts()
        except EpochEnded:
            raise
        except BusError as error:
            log.warning("old_rows_not_deleted", error=str(error))
            return 0

    async def _forget_old_keys(self, now: int) -> None:
        ttl = self._config().idem_ttl_secs
        old = [row for row in await self._idem.list() if not row.live(now, ttl)]
        for start in range(0, len(old), DELETES):
            await self._bus.sequence([self._idem.drop(row.key) for row in old[start : start + DELETES]])
