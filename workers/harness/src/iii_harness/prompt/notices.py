"""What the harness tells the model between steps, and when (harness-agents 3.8, 3.10, 4.2).

The context that a session's first step froze is never edited: a change is told by a notice, which stays in the
transcript where it was sent. A notice that a compaction summarised away counts as not told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from iii_contracts.problems import is_object
from iii_harness.catalog import INFO
from iii_harness.ports import Item, Notice

CONTEXT: Final = "runtime_context"
"""Custom type of the entry with the frozen context."""

NOTICE: Final = "model_notice"
"""Custom type of a notice in the transcript."""

REGISTRY_CHANGED: Final = "registry-changed"
CONTEXT_CHANGED: Final = "runtime-context"

LEAD_IN: Final = "NOTE: the session context changed; the following replaces the earlier one."


@dataclass(frozen=True, slots=True)
class Told:
    """The session context as the transcript has it: as frozen, and as last told."""

    frozen: str | None
    latest: str | None


def told(path: Sequence[Item]) -> Told:
    """What the model was shown of the session context."""
    frozen = next((aid for item in path if (aid := _text(item, CONTEXT, "aid")) is not None), None)
    for item in reversed(in_window(path)):
        if item.custom_type == NOTICE and _text(item, NOTICE, "kind") == CONTEXT_CHANGED:
            text = _text(item, NOTICE, "text") or ""
            return Told(frozen, text.removeprefix(f"{LEAD_IN}\n"))
    return Told(frozen, frozen)


def context_notice(seen: Told, current: str) -> Notice | None:
    """The notice of a session context that is no longer what the model was told."""
    if seen.latest is None or seen.latest == current:
        return None
    return Notice(CONTEXT_CHANGED, f"{LEAD_IN}\n{current}")


def registry_notice(acknowledged: Collection[str] | None, current: Collection[str], *, may_read: bool) -> Notice | None:
    """The notice of functions that changed or left since they were acknowledged; what only joined is silent."""
    if acknowledged is None or acknowledged == current or set(acknowledged) <= set(current):
        return None
    return Notice(
        REGISTRY_CHANGED,
        "NOTE: the function registry changed during this conversation. Contracts that you read earlier may be stale. "
        + refetch_hint(may_read=may_read),
    )


def refetch_hint(*, may_read: bool) -> str:
    """How to go on with contracts that may be stale."""
    if may_read:
        return f"Read the contracts you rely on again with {INFO} before you call those functions."
    return "This session cannot read contracts again: if a call needs one, report that need instead of guessing."


def in_window(path: Sequence[Item]) -> Sequence[Item]:
    """The entries that no compaction has summarised (harness-loop 12.4)."""
    last = next((i for i in range(len(path) - 1, -1, -1) if path[i].custom_type == "compaction"), None)
    if last is None:
        return path
    data = path[last].data
    fields: dict[str, Any] = cast("dict[str, Any]", data) if is_object(data) else {}
    if not fields.get("summary") or "tail_start_entry_id" not in fields:
        return path
    boundary = fields["tail_start_entry_id"]
    if boundary is None:
        return path[last + 1 :]
    start = next((i for i, item in enumerate(path) if item.entry_id == boundary), None)
    return path if start is None else path[start:]


def told_notices(*notices: Notice | None) -> tuple[Notice, ...]:
    """The notices that there are, in order."""
    return tuple(_present(notices))


def _present(notices: Iterable[Notice | None]) -> Iterable[Notice]:
    return (notice for notice in notices if notice is not None)


def _text(item: Item, custom_type: str, key: str) -> str | None:
    if item.custom_type != custom_type or not is_object(item.data):
        return None
    value: Any = cast("dict[str, Any]", item.data).get(key)
    return value if isinstance(value, str) else None
