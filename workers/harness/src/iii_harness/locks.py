"""In-process locks by key: one per session, one per idempotency key (harness-loop 3.1 step 3, 4).

Every read-modify-write of a turn record happens under its session's lock. A lock is not reentrant: code that may run
under it takes that fact as an argument. Order: idempotency key, then session; never two sessions at once. A key that
nobody holds or awaits costs no memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Entry:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Locks:
    """Non-reentrant async locks, one per key, first come first served."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncGenerator[None]:
        """Wait for the lock of `key` and hold it for the block."""
        entry = self._entries.setdefault(key, _Entry())
        entry.users += 1
        try:
            async with entry.lock:
                yield
        finally:
            entry.users -= 1
            if entry.users == 0:
                self._entries.pop(key, None)

    def held(self, key: str) -> bool:
        """True while somebody holds the lock of `key`."""
        entry = self._entries.get(key)
        return entry is not None and entry.lock.locked()

    def __len__(self) -> int:
        return len(self._entries)
