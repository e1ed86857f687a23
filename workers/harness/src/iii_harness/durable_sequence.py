"""A sequence of durable calls with the retries that each kind allows (harness-loop 4, 6.5, 8.2, 11.5).

A timed-out state write and a status that did not get through are tried once more after 500 ms, an enqueue five times
in all, the append of a result ten times more while the store is away; all change nothing when they had worked. What
fails for good is told with its place, so that the caller knows the prefix that is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from iii_harness.errors import dependency, invalid_request, state_failed
from iii_harness.turn_queue import ENQUEUE_PAUSE_S, ENQUEUE_TRIES
from iii_kit.bus import Call, Caller, Json
from iii_kit.errors import BusError, CodedError, EpochEnded, PartialSequence
from iii_kit.world import Clock

RESULT_TRIES: Final = 11
RESULT_PAUSE_S: Final = 0.25
"""The append of a result waits for a session store that is away: the call was made, and will not be made again."""

STATE_PAUSE_S: Final = 0.5


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
    try:
        return await bus.sequence(calls)
    except PartialSequence as partial:
        return await _go_on(bus, clock, calls, partial)


async def _go_on(bus: Caller, clock: Clock, calls: Sequence[Call], partial: PartialSequence) -> list[Json]:
    """The rest of a sequence, from the call that failed, as often as its kind allows."""
    done: list[Json] = []
    tries = 0
    while True:
        if isinstance(partial.cause, EpochEnded):
            raise partial.cause from partial
        tries = 1 if partial.done else tries + 1
        done.extend(partial.done)
        failed = calls[len(done)]
        allowed, pause_s = _patience(failed, partial.cause)
        if tries >= allowed:
            raise SequenceFailed(len(done), failed, partial.cause) from partial
        await clock.sleep(pause_s)
        try:
            return [*done, *await bus.sequence(calls[len(done) :])]
        except PartialSequence as again:
            partial = again


def _patience(call: Call, cause: BusError) -> tuple[int, float]:
    """How often a call is tried in all, and the pause between two tries."""
    if call.kind == "enqueue":
        return ENQUEUE_TRIES, ENQUEUE_PAUSE_S
    if call.fn == "state::set" and cause.code == "TIMEOUT":
        return 2, STATE_PAUSE_S
    if not _unreachable(cause):
        return 1, 0.0
    if call.fn == "session::set-status":
        return 2, STATE_PAUSE_S
    if _is_result(call):
        return RESULT_TRIES, RESULT_PAUSE_S
    return 1, 0.0


def _is_result(call: Call) -> bool:
    """True for the append of a call's result, whose id makes it repeatable."""
    message: Any = call.data.get("message") if call.fn == "session::append" else None
    role: Any = cast("dict[str, Any]", message).get("role") if isinstance(message, dict) else None
    return role == "function_result"


def _unreachable(cause: BusError) -> bool:
    if cause.code in ("TIMEOUT", "not_connected"):
        return True
    text = str(cause).lower()
    return any(sign in text for sign in ("function_not_found", "not connected", "timed out"))
