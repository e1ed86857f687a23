"""A sequence of durable calls with the retries that each kind allows (harness-loop 4, 6.5).

A timed-out state write is tried once more after 500 ms, an enqueue five times in all, 500 ms apart; both change nothing
when they had worked. What fails for good is told with its place, so that the caller knows the prefix that is done.
"""

from __future__ import annotations

from collections.abc import Sequence

from iii_harness.errors import dependency, invalid_request, state_failed
from iii_harness.turn_queue import ENQUEUE_PAUSE_S, ENQUEUE_TRIES
from iii_kit.bus import Call, Caller, Json
from iii_kit.errors import BusError, CodedError, EpochEnded, PartialSequence
from iii_kit.world import Clock


class SequenceFailed(Exception):
    """Calls before `at` are done; the call at `at` failed for good."""

    def __init__(self, at: int, call: Call, cause: BusError) -> None:
        super().__init__(at, call.fn, str(cause))
        self.at = at
        self.call = call
        self.cause = cause

    def answer(self) -> CodedError:
        """What the caller of the harness is told."""
        if self.call.kind == "enqueue":
            return dependency(f"enqueue {self.call.fn}", self.cause)
        if self.call.fn.startswith("state::"):
            return state_failed(f"{self.call.fn} {self.call.data['scope']}", self.cause)
        if self.cause.matches("session/invalid_request"):
            return invalid_request(f"`session`: {self.cause.message}")
        return dependency(self.call.fn, self.cause)


async def perform(bus: Caller, clock: Clock, calls: Sequence[Call]) -> list[Json]:
    """Make `calls` in order; results in order. Raises `SequenceFailed` or `EpochEnded`."""
    done: list[Json] = []
    tries = 0
    while True:
        try:
            return [*done, *await bus.sequence(calls[len(done) :])]
        except EpochEnded:
            raise
        except PartialSequence as partial:
            if isinstance(partial.cause, EpochEnded):
                raise partial.cause from partial
            tries = 1 if partial.done else tries + 1
            done.extend(partial.done)
            failed = calls[len(done)]
            if tries >= _tries(failed, partial.cause):
                raise SequenceFailed(len(done), failed, partial.cause) from partial
            await clock.sleep(ENQUEUE_PAUSE_S)


def _tries(call: Call, cause: BusError) -> int:
    if call.kind == "enqueue":
        return ENQUEUE_TRIES
    return 2 if call.fn == "state::set" and cause.code == "TIMEOUT" else 1
