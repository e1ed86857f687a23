"""What the session store shows of a turn: the session's status, its repair and the sweep at boot (harness-loop 11.5).

The turn record rules; the status is derived from it. A write that fails is tried once more after 500 ms and then left
to the next repair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from iii_harness.locks import Locks
from iii_harness.record import TurnRecord
from iii_harness.turn_store import TurnStore
from iii_kit.bus import Call, Caller, Opts
from iii_kit.clients.session import SessionClient, set_status_call
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger
from iii_kit.world import Clock

log = logger(__name__)

RETRY_S = 0.5
SWEEP_TRIES = 6
SWEEP_PAUSE_S = 5.0


def status_call(record: TurnRecord) -> Call:
    """The status of a session whose last turn has ended as `record` says."""
    if record.status == "failed":
        return set_status_call(record.session_id, "error", record.result_error)
    return set_status_call(record.session_id, "done", "stopped" if record.status == "cancelled" else None)


class SessionStatus:
    """Writes and repairs the projected status."""

    def __init__(self, bus: Caller, clock: Clock, turns: TurnStore, locks: Locks, opts: Callable[[], Opts]) -> None:
        self._bus = bus
        self._clock = clock
        self._turns = turns
        self._locks = locks
        self._opts = opts
        self._repairs: dict[str, asyncio.Task[None]] = {}

    async def working(self, session_id: str, reason: str) -> None:
        """The session works; `reason` says at what."""
        await self._write(set_status_call(session_id, "working", reason))

    async def ended(self, record: TurnRecord) -> None:
        """The session's turn is over."""
        await self._write(status_call(record))

    def repair_soon(self, session_id: str) -> None:
        """Repair beside the caller, who does not wait; one repair of a session at a time."""
        if session_id not in self._repairs:
            repair = asyncio.ensure_future(self._repair_quietly(session_id))
            self._repairs[session_id] = repair
            repair.add_done_callback(lambda _: self._repairs.pop(session_id, None))

    async def repair(self, session_id: str) -> None:
        """Derive the status anew when no turn is live: from the record, or `idle` when there is none."""
        async with self._locks.hold(session_id):
            record = await self._turns.load(session_id)
            if record is not None and not record.terminal:
                return
            if record is not None:
                await self.ended(record)
                return
            meta = await self._bus.call("session::get", {"session_id": session_id}, opts=self._opts())
            if meta and meta["meta"]["status"] == "working":
                await self._write(set_status_call(session_id, "idle"))

    async def sweep(self) -> None:
        """Repair every session that the store takes for working, once after the start."""
        for session in await self._working():
            await self._repair_quietly(session["session_id"])

    async def drain(self) -> None:
        """Let repairs under way end."""
        await asyncio.gather(*self._repairs.values(), return_exceptions=True)

    async def _working(self) -> list[dict[str, str]]:
        for attempt in range(SWEEP_TRIES):
            if attempt:
                await self._clock.sleep(SWEEP_PAUSE_S)
            try:
                return await SessionClient(self._bus).list(status="working")
            except EpochEnded:
                raise
            except BusError as error:
                log.warning("working_sessions_not_listed", attempt=attempt + 1, error=str(error))
        return []

    async def _repair_quietly(self, session_id: str) -> None:
        try:
            await self.repair(session_id)
        except EpochEnded:
            return
        except BusError as error:
            log.warning("session_status_not_repaired", session=session_id, error=str(error))

    async def _write(self, call: Call) -> None:
        for last in (False, True):
            try:
                await self._bus.call(call.fn, call.data, opts=self._opts())
                return
            except EpochEnded:
                raise
            except BusError as error:
                if error.matches("session/not_found"):
                    return
                if last:
                    log.warning("session_status_not_written", session=call.data["session_id"], error=str(error))
                    return
            await self._clock.sleep(RETRY_S)
