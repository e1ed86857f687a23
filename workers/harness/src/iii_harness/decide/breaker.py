"""The repeated-failure breaker (harness-loop 8.6): the same call that failed twice in the same way is not run again.

Per turn, keyed by the function and the model's own arguments; the error's digest is taken from the target's own
result, before the harness adds anything.
"""

from __future__ import annotations

from iii_harness.decide.canonical import digest
from iii_harness.ports import Block
from iii_harness.record import Failure
from iii_kit.bus import Json

LIMIT = 2
"""Equal failures after which a call is answered locally."""


def key_of(function_id: str, arguments: Json) -> str:
    """Identity of a call for the breaker."""
    return digest([function_id, arguments])


def tripped(failed: dict[str, Failure], key: str) -> int | None:
    """How often the call failed in the same way, once that is enough to stop it."""
    failure = failed.get(key)
    return failure.count if failure is not None and failure.count >= LIMIT else None


def after(failed: dict[str, Failure], key: str, content: list[Block], *, is_error: bool) -> dict[str, Failure]:
    """The failures known after a dispatched result."""
    known = failed.get(key)
    if not is_error:
        return {other: failure for other, failure in failed.items() if other != key} if known else failed
    error = digest(content)
    count = known.count + 1 if known is not None and known.error_digest == error else 1
    return {**failed, key: Failure(error_digest=error, count=count)}
