"""`harness::on-session-deleted`: forget everything about a session that is gone (harness-loop 3.11, harness-agents 15).

Each part is best effort and may run again. A turn that still runs fails at its next write to the session; a step that
holds the session is waited for, since it would write its record anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from iii_contracts.harness.upkeep import SessionDeleted
from iii_harness import context_rows
from iii_harness.locks import Locks
from iii_harness.queue_rows import QueueRows
from iii_harness.turn_store import TurnStore
from iii_kit.bus import Call, Caller, Invocation, Opts
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger

log = logger(__name__)

SCOPES = (context_rows.SCOPE,)
"""Scopes with one row by session id, beside turn and queue."""


class SessionPurge:
    """Serves the function."""

    def __init__(self, bus: Caller, turns: TurnStore, queue: QueueRows, locks: Locks, opts: Callable[[], Opts]) -> None:
        self._bus = bus
        self._turns = turns
        self._queue = queue
        self._locks = locks
        self._opts = opts

    async def on_deleted(self, request: SessionDeleted, _: Invocation) -> dict[str, Any]:
        """Delete the session's rows; `removed` counts bindings, of which this version keeps none."""
        session_id = request.session_id
        async with self._locks.hold(session_id):
            await self._try("queue rows", self._queue.purge(session_id))
            for scope in SCOPES:
                await self._try(scope, self._delete(scope, session_id))
            await self._try("turn record", self._turns.delete(session_id))
        return {"ok": True, "removed": 0}

    async def _delete(self, scope: str, session_id: str) -> None:
        call = Call("state::delete", {"scope": scope, "key": session_id}, opts=self._opts())
        await self._bus.call(call.fn, call.data, opts=call.opts)

    async def _try(self, what: str, work: Awaitable[None]) -> None:
        try:
            await work
        except EpochEnded:
            raise
        except BusError as error:
            log.warning("rows_of_deleted_session_remain", what=what, error=str(error))
