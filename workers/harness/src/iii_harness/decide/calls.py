"""The calls of one reply, strictly in order (harness-loop 8.2): which are answered here, which is invoked next.

A call is invoked only once its `triggered` is durable, and never again for that checkpoint (8.7).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from iii_harness.decide import breaker, entry_ids, synthetic
from iii_harness.decide.decision import Append, Facts, View
from iii_harness.decide.ending import done, result_entry
from iii_harness.decide.plan import WRAPPER, PlannedCall, plan
from iii_harness.decide.results import Result
from iii_harness.ports import Message
from iii_harness.record import Checkpoint, TurnRecord


class Walk(msgspec.Struct, frozen=True):
    """The way to the next call to invoke (`call`, already `triggered` in the record), or to the end of the message."""

    record: TurnRecord
    answered: list[Append]
    call: PlannedCall | None
    behind: Sequence[PlannedCall] = ()
    """The calls after that one."""


def planned(record: TurnRecord, message: Message) -> list[PlannedCall]:
    """The calls of the step's reply."""
    policy = record.options.functions
    return plan(message.get("content"), expose=policy.expose if policy is not None else "agent_trigger")


def walk(record: TurnRecord, message: Message, calls: Sequence[PlannedCall], view: View, facts: Facts) -> Walk:
    """Answer locally those of the reply's `calls` that need no target, up to the first one that does."""
    answered: list[Append] = []
    checkpoints = dict(record.calls)
    for index, call in enumerate(calls):
        checkpoint = checkpoints.get(call.id)
        if checkpoint is not None and checkpoint.state != "triggered":
            continue
        entry_id = entry_ids.result(record.turn_id, call.id)
        if entry_id in view.logged:
            checkpoints[call.id] = done(call.target, entry_id)
            continue
        local = (
            synthetic.interrupted(stopped=False)
            if checkpoint is not None
            else local_result(record, message, call, facts)
        )
        if local is None:
            checkpoints[call.id] = Checkpoint(state="triggered", function_id=call.target)
            triggered = replace(record, calls=checkpoints, updated_at=facts.now_ms)
            return Walk(triggered, answered, call, calls[index + 1 :])
        answered.append(result_entry(record, call.id, call.target, local, facts))
        checkpoints[call.id] = done(call.target, entry_id)
    return Walk(replace(record, calls=checkpoints, updated_at=facts.now_ms), answered, None)


def local_result(record: TurnRecord, message: Message, call: PlannedCall, facts: Facts) -> Result | None:
    """The result of a call that no target may or need see (8.2 steps 3-6), or None."""
    if call.kind == "submit":
        return synthetic.no_submit(call)
    if call.target == WRAPPER:
        return synthetic.no_target(call)
    if synthetic.is_truncated(call.arguments):
        return synthetic.truncated(call, at_length=message.get("stop_reason") == "length")
    if facts.gate is None:
        return synthetic.denied(call, f"{call.target} is denied: this turn has no function policy.")
    denial = facts.gate.denial(call.target, call.arguments)
    if denial is not None:
        return synthetic.denied(call, denial)
    count = breaker.tripped(record.failed_calls, breaker.key_of(call.target, call.arguments))
    return None if count is None else synthetic.repeated(call, count)


def settled(record: TurnRecord, call: PlannedCall, result: Result) -> TurnRecord:
    """The record after an invoked call gave its own result."""
    key = breaker.key_of(call.target, call.arguments)
    failures = breaker.after(record.failed_calls, key, result.content, is_error=result.is_error)
    entry_id = entry_ids.result(record.turn_id, call.id)
    return replace(record, failed_calls=failures, calls={**record.calls, call.id: done(call.target, entry_id)})
