"""The one place where a target is invoked (harness-loop 8.2 step 12, 8.3).

Its checkpoint is durable before, and it is never invoked again. An engine restart ends the connection this step runs
on, and with it the wait: the step is delivered again and finds the call interrupted, its outcome unknown.
"""

from __future__ import annotations

import asyncio

from iii_harness.decide.decision import Cut, Invoke, Returned
from iii_harness.decide.plan import PlannedCall
from iii_harness.decide.results import Result, of_error, of_value
from iii_harness.ports import Gate
from iii_harness.record import TurnRecord
from iii_harness.shell.parts import Parts
from iii_harness.shell.racing import Background, unless_stopped
from iii_harness.walls import without_stamp
from iii_kit.bus import Opts
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger

log = logger(__name__)


class Dispatch:
    """Invokes the targets of calls."""

    def __init__(self, parts: Parts, background: Background) -> None:
        self._parts = parts
        self._background = background

    async def invoke(self, record: TurnRecord, asked: Invoke, gate: Gate) -> Returned | Cut:
        """Invoke once and wait for the result, or for a stop of the turn."""
        call, signals = asked.call, self._parts.signals
        if signals.fired(record.turn_id):
            return Cut(call)
        work = asyncio.ensure_future(self._result(call))
        if not await unless_stopped(signals, record.turn_id, work):
            work.add_done_callback(lambda _: log.info("late_result_dropped", call=call.id, function=call.target))
            self._background.keep(work)
            return Cut(call)
        result = work.result()
        if result.is_error:
            return Returned(call, result, behind=asked.behind)
        ledger = record.function_contract_ledger
        presented = gate.present(call.id, call.target, call.arguments, result.details, ledger)
        return Returned(call, result, presented, asked.behind)

    async def _result(self, call: PlannedCall) -> Result:
        namespace = "default" if call.target.startswith("configuration::") else None
        opts = Opts(timeout_ms=self._parts.limits().dispatch_timeout_ms, namespace=namespace)
        try:
            return of_value(await self._parts.targets.call(call.target, without_stamp(call.arguments), opts=opts))
        except EpochEnded:
            raise
        except BusError as error:
            return of_error(call.target, error)
