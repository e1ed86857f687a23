"""The rows of the queue provider: definitions and jobs (siblings 9, "Embedded queue").

A row of `jobs` is ready, running or dead; a job that is done has none. `seq` is the order of acceptance.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from iii_contracts.engine.queue import EnqueueRequest, QueueConfig
from iii_kit.encoding import decode, stored
from iii_kit.storage import Reader, Tx
from iii_queue.schedule import Job
from iii_queue.verdict import Absent, Dead, Done, Retry, Verdict
from iii_store.schema import Family

FAMILY = Family(
    "queue",
    (
        (
            "CREATE TABLE queue_defs(name TEXT PRIMARY KEY, config TEXT NOT NULL) WITHOUT ROWID",
            "CREATE TABLE jobs(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, queue TEXT NOT NULL, grp TEXT,"
            " function_id TEXT NOT NULL, data TEXT NOT NULL, namespace TEXT, traceparent TEXT, baggage TEXT,"
            " attempt INTEGER NOT NULL DEFAULT 0, deaths INTEGER NOT NULL DEFAULT 0,"
            " state TEXT NOT NULL DEFAULT 'ready', not_before INTEGER NOT NULL DEFAULT 0, error TEXT,"
            " failed_at INTEGER, created_at INTEGER NOT NULL)",
        ),
    ),
)

DEFAULT_QUEUE = "default"
"""The queue that always exists (engine spec 14.2)."""

MAX_DEATHS = 10
"""So often may a process end while it runs the same job; then the job is a dead letter."""

Statement = tuple[str, tuple[Any, ...]]
"""One statement with its arguments."""


def definition(reader: Reader, queue: str) -> QueueConfig | None:
    """How a queue is defined, or None."""
    row = reader.execute("SELECT config FROM queue_defs WHERE name = ?", (queue,)).fetchone()
    if row is not None:
        return _config(row[0])
    return QueueConfig() if queue == DEFAULT_QUEUE else None


def define(tx: Tx, queue: str, config: QueueConfig) -> None:
    """Store a definition."""
    tx.execute("INSERT OR REPLACE INTO queue_defs VALUES(?, ?)", (queue, config.model_dump_json()))


def definitions(reader: Reader) -> dict[str, QueueConfig]:
    """Every stored definition."""
    return {name: _config(text) for name, text in reader.execute("SELECT name, config FROM queue_defs")}


def insert(tx: Tx, request: EnqueueRequest, group: str | None, baggage: str | None, now_ms: int) -> int | None:
    """Accept a job: its place in the order, or None when its id is there already."""
    row = tx.execute(
        "INSERT INTO jobs(id, queue, grp, function_id, data, namespace, traceparent, baggage, created_at)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO NOTHING RETURNING seq",
        (
            request.messageReceiptId,
            request.queue,
            group,
            request.function_id,
            stored(request.data),
            request.namespace,
            request.traceparent,
            baggage,
            now_ms,
        ),
    ).fetchone()
    return None if row is None else row[0]


def recover(tx: Tx, now_ms: int) -> None:
    """After a start: what was running when the last process ended waits again, or is dead after too many deaths."""
    tx.execute(
        "UPDATE jobs SET state = 'dead', deaths = deaths + 1, failed_at = ?,"
        " error = 'the process that ran this job ended ' || (deaths + 1) || ' times while it did'"
        " WHERE state = 'running' AND deaths >= ?",
        (now_ms, MAX_DEATHS),
    )
    tx.execute("UPDATE jobs SET state = 'ready', deaths = deaths + 1 WHERE state = 'running'")


def waiting(reader: Reader) -> list[Job]:
    """Every job that waits, in order, without its data."""
    rows = reader.execute(
        "SELECT seq, id, queue, grp, function_id, namespace, traceparent, baggage, attempt, not_before"
        " FROM jobs WHERE state = 'ready' ORDER BY seq"
    )
    return [Job(*row, fresh=False) for row in rows]


def data_of(reader: Reader, seq: int) -> Any:
    """What a job calls its function with."""
    row = reader.execute("SELECT data FROM jobs WHERE seq = ?", (seq,)).fetchone()
    if row is None:
        raise LookupError(f"job {seq} has no row")
    return decode(row[0])


def claim(job: Job) -> Statement:
    """Mark a job as running."""
    return "UPDATE jobs SET state = 'running' WHERE seq = ?", (job.seq,)


def release(job: Job) -> Statement:
    """Mark a job as waiting at its old place, as if it had not started."""
    return "UPDATE jobs SET state = 'ready' WHERE seq = ?", (job.seq,)


def settle(job: Job, verdict: Verdict, now_ms: int) -> Statement:
    """Write down what became of a delivery."""
    match verdict:
        case Done():
            return "DELETE FROM jobs WHERE seq = ?", (job.seq,)
        case Retry(attempt, not_before, error):
            return (
                "UPDATE jobs SET state = 'ready', attempt = ?, not_before = ?, error = ? WHERE seq = ?",
                (attempt, not_before, error, job.seq),
            )
        case Absent():
            return release(job)
        case Dead(attempt, error):
            return (
                "UPDATE jobs SET state = 'dead', attempt = ?, error = ?, failed_at = ? WHERE seq = ?",
                (attempt, error, now_ms, job.seq),
            )


@lru_cache(maxsize=1024)
def _config(text: str) -> QueueConfig:
    return QueueConfig.model_validate_json(text)
