"""What is known only in this process: which steps execute, and which turns were told to stop (harness-loop 6.1, 11.4).

Both are empty after a restart; the durable half of a stop is the record's `abort` flag. A cancel signal is
level-triggered: it counts for waits that begin after it was fired, until the turn's finalisation clears it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class CancelSignals:
    """One signal per turn id."""

    def __init__(self) -> None:
        self._fired: set[str] = set()
        self._watching: dict[str, list[Callable[[], None]]] = {}

    def fire(self, turn_id: str) -> None:
        """Tell a turn to stop: ends every wait, also those that begin later."""
        self._fired.add(turn_id)
        for tell in list(self._watching.get(turn_id, ())):
            tell()

    def fired(self, turn_id: str) -> bool:
        """True once the turn was told to stop in this process."""
        return turn_id in self._fired

    def clear(self, turn_id: str) -> None:
        """Forget a turn that has ended."""
        self._fired.discard(turn_id)

    def watch(self, turn_id: str, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` when the turn is told to stop, at once when it was; the result ends the watch."""
        if turn_id in self._fired:
            tell()
        watching = self._watching.setdefault(turn_id, [])
        watching.append(tell)

        def leave() -> None:
            watching.remove(tell)
            if not watching and self._watching.get(turn_id) is watching:
                del self._watching[turn_id]

        return leave

    async def wait(self, turn_id: str) -> None:
        """Return as soon as the turn is told to stop."""
        event = asyncio.Event()
        leave = self.watch(turn_id, event.set)
        try:
            await event.wait()
        finally:
            leave()

    def __len__(self) -> int:
        return len(self._fired) + len(self._watching)


class ExecutingSteps:
    """The `(turn_id, step)` pairs that deliveries of this process are working on, by session."""

    def __init__(self) -> None:
        self._by_session: dict[str, set[tuple[str, int]]] = {}

    def enter(self, session_id: str, turn_id: str, step: int) -> bool:
        """Add a step; False, and nothing added, when another delivery of it is executing."""
        steps = self._by_session.setdefault(session_id, set())
        if (turn_id, step) in steps:
            return False
        steps.add((turn_id, step))
        return True

    def leave(self, session_id: str, turn_id: str, step: int) -> None:
        """Take a step out, however it ended."""
        steps = self._by_session.get(session_id)
        if steps is None:
            return
        steps.discard((turn_id, step))
        if not steps:
            del self._by_session[session_id]

    def executing(self, session_id: str) -> bool:
        """True while a step of the session executes in this process."""
        return session_id in self._by_session

    def __len__(self) -> int:
        return len(self._by_session)
