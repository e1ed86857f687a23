"""The queue `harness-turn`: its definition and the payload of a step (harness-loop 7.1, 7.2)."""

from __future__ import annotations

from typing import Any, Final

from iii_harness.record import TurnRecord
from iii_kit.bus import Call

QUEUE: Final = "harness-turn"
TURN: Final = "harness::turn"

ENQUEUE_TRIES: Final = 5
ENQUEUE_PAUSE_S: Final = 0.5


def definition(concurrency: int) -> dict[str, Any]:
    """The config of the queue: one step of a session at a time, `concurrency` sessions side by side."""
    return {
        "type": "fifo",
        "message_group_field": "session_id",
        "concurrency": concurrency,
        "max_retries": 3,
        "backoff_ms": 1000,
        "poll_interval_ms": 100,
        "redeliver_on_engine_restart": True,
    }


def enqueue_call(record: TurnRecord) -> Call:
    """The call that hands the record's current step to the queue."""
    payload: dict[str, Any] = {
        "session_id": record.session_id,
        "turn_id": record.turn_id,
        "step": record.step,
        "depth": record.depth,
    }
    if record.message_preview is not None:
        payload["message_preview"] = record.message_preview
    return Call(TURN, payload, kind="enqueue", queue=QUEUE)
