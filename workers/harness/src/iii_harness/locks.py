"""In-process locks by key: one per session, one per idempotency key (harness-loop 3.1 step 3, 4).

Every read-modify-write of a turn record happens under its session's lock. A lock is not reentrant: code that may run
under it takes that fact as an argument. Order: idempotency key, then session; never two sessions at once. A key that
nobody holds or awaits costs no memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType


class Locks:
    """Non-reentrant async locks, one per key, first come first served."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def hold(self, key: str) -> _Hold:
        """Wait for the lock of `key` and hold it for the block."""
        return _Hold(self._waiting, key)

    def held(self, key: str) -> bool:
        """True while somebody holds the lock of `key`."""
        return key in self._waiting

    def __len__(self) -> int:
        return len(self._waiting)


class _Hold:
    """One block under a lock. A key with an entry in `waiting` is held; its holder hands it to who waits longest."""

    __slots__ = ("_key", "_waiting")

    def __init__(self, waiting: dict[str, deque[asyncio.Future[None]]], key: str) -> None:
        self._waiting = waiting
        self._key = key

    async def __aenter__(self) -> None:
        queue = self._waiting.get(self._key)
        if queue is None:
            self._waiting[self._key] = deque()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._pass_on()
            raise

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        queue = self._waiting[self._key]
        while queue:
            turn = queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[self._key]
