"""`harness::unqueue` and `harness::edit_queued`: a parked message is taken back or changed (harness-loop 3.7)."""

from __future__ import annotations

from typing import Any

from iii_contracts.harness.parked import EditQueuedRequest, UnqueueRequest
from iii_harness.entry.messages import normalise
from iii_harness.events import HarnessEvents
from iii_harness.queue_rows import QueueRows
from iii_harness.turn_store import TurnStore
from iii_kit.bus import Invocation
from iii_kit.world import Clock


class ParkedMessages:
    """Serves both functions. A row that was delivered meanwhile answers false, and is left alone."""

    def __init__(self, queue: QueueRows, turns: TurnStore, events: HarnessEvents, clock: Clock) -> None:
        self._queue = queue
        self._turns = turns
        self._events = events
        self._clock = clock

    async def unqueue(self, request: UnqueueRequest, _: Invocation) -> dict[str, Any]:
        """Remove the row."""
        return {"removed": await self._queue.remove(request.session_id, request.entry_id)}

    async def edit(self, request: EditQueuedRequest, _: Invocation) -> dict[str, Any]:
        """Replace the message; the place in the queue and everything else of the row stay."""
        message = normalise(request.message, self._clock.now_ms())
        row = await self._queue.edit(request.session_id, request.entry_id, message)
        if row is None:
            return {"updated": False}
        await self._events.message_queued(row, await self._turns.load(request.session_id))
        return {"updated": True}
