"""Retries inside a sequence of durable calls, on a bus that fails as told and a clock that only counts."""

from __future__ import annotations

from typing import Any

import pytest

from iii_harness.durable_sequence import SequenceFailed, perform
from iii_kit.bus import Call
from iii_kit.errors import BusError, PartialSequence

pytestmark = pytest.mark.anyio

RESULT = Call("session::append", {"session_id": "s", "entry_id": "e_t_c", "message": {"role": "function_result"}})
USER = Call("session::append", {"session_id": "s", "message": {"role": "user"}})
STATUS = Call("session::set-status", {"session_id": "s", "status": "done"})
SAVE = Call("state::set", {"scope": "harness_turn", "key": "s", "value": {}})
AWAY = BusError("function_not_found", "Function session::append not found in namespace default.")
REFUSED = BusError("invocation_failed", "session/not_found: no session s")


class Failing:
    """Fails the call `which` for the first `times` tries."""

    def __init__(self, which: Call, error: BusError, times: int) -> None:
        self.which, self.error, self.left = which, error, times
        self.made: list[str] = []
        self.slept: list[float] = []

    async def sequence(self, calls: list[Call]) -> list[Any]:
        done: list[Any] = []
        for call in calls:
            self.made.append(call.fn)
            if call is self.which and self.left:
                self.left -= 1
                raise PartialSequence(done, self.error)
            done.append(call.fn)
        return done

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def run(self, *calls: Call) -> list[Any]:
        return await perform(self, self, calls)  # type: ignore[arg-type]


@pytest.mark.requirement("loop.result.append-waits")
@pytest.mark.parametrize("error", [AWAY, BusError("TIMEOUT", "invocation timed out after 9ms")])
async def test_the_append_of_a_result_waits_for_a_session_store_that_is_away(error):
    bus = Failing(RESULT, error, 10)
    assert await bus.run(SAVE, RESULT, STATUS) == ["state::set", "session::append", "session::set-status"]
    assert bus.made.count("state::set") == 1 and bus.slept == [0.25] * 10
    with pytest.raises(SequenceFailed) as failed:
        await Failing(RESULT, error, 11).run(SAVE, RESULT)
    assert failed.value.at == 1


@pytest.mark.requirement("loop.result.append-waits")
@pytest.mark.parametrize(("which", "error"), [(RESULT, REFUSED), (USER, AWAY)])
async def test_what_is_refused_or_could_be_stored_twice_is_not_tried_again(which, error):
    bus = Failing(which, error, 1)
    with pytest.raises(SequenceFailed):
        await bus.run(which)
    assert bus.slept == []


@pytest.mark.requirement("loop.status.retried")
async def test_a_status_that_does_not_get_through_is_tried_once_more():
    bus = Failing(STATUS, AWAY, 1)
    await bus.run(SAVE, STATUS)
    assert bus.slept == [0.5]
    with pytest.raises(SequenceFailed):
        await Failing(STATUS, AWAY, 2).run(STATUS)
