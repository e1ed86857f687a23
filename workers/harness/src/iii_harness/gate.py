"""The policy of one turn as the loop asks it: globs, walls, and what discovery shows (harness-loop 8.5, 9A)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from iii_harness import discovery, walls
from iii_harness.catalog import Snapshot
from iii_harness.policy import CompiledPolicy
from iii_harness.ports import Message, Presented
from iii_harness.record import Contract

SHOWN_GLOBS = 12
"""Globs of a policy that a denial lists."""


class CallGate:
    """Decides about calls of one turn, by its policy and the registry of the moment.

    `shown` are the messages that the model has before it, as far as they are known: a contract that does not stand
    there is shown anew.
    """

    def __init__(
        self, policy: CompiledPolicy, snapshot: Snapshot, shown: Callable[[], Iterable[Message]] = list[Message]
    ) -> None:
        self.policy = policy
        self._snapshot = snapshot
        self._shown = shown

    def showing(self, messages: Sequence[Message]) -> CallGate:
        """The same policy for a model that has just these messages before it."""
        return CallGate(self.policy, self._snapshot, lambda: messages)

    def allows(self, function_id: str) -> bool:
        """True when the turn may call this id with some arguments."""
        return self.policy.allows(function_id) and not walls.refuses(function_id)

    def denial(self, function_id: str, arguments: Any) -> str | None:
        """Why this call is refused (the text of the result), or None."""
        wall = walls.refusal(function_id, arguments)
        if wall is not None:
            return f"`{function_id}` is denied: {wall}. {FUTILE}"
        if self.policy.allows(function_id):
            return None
        return " ".join(
            filter(None, (f"`{function_id}` is denied {self._because()}.", self._hint(function_id), FUTILE))
        )

    def present(
        self, call_id: str, function_id: str, arguments: Any, value: Any, ledger: dict[str, Contract]
    ) -> Presented | None:
        """The model's view of a discovery result; None for every other function."""
        if function_id not in discovery.FUNCTIONS:
            return None
        visible = discovery.still_visible(ledger, self._shown())
        unseen = {shown_id: contract for shown_id, contract in ledger.items() if not contract.eligible}
        view = discovery.view(call_id, function_id, value, {**unseen, **visible}, self.allows)
        return None if view is None else Presented(view.content, view.ledger)

    def _because(self) -> str:
        policy = self.policy
        if policy.problem is not None:
            return (
                f"because this session's function policy does not compile ({policy.problem}), which denies every call"
            )
        if policy.denies_all:
            return "by this session's function policy, which allows no function at all"
        denied = f", deny {shown(policy.deny)}" if policy.deny else ""
        return f"by this session's function policy (allow {shown(policy.allow)}{denied})"

    def _hint(self, function_id: str) -> str:
        """An id the model may have meant, when the one it named does not exist."""
        if self._snapshot.has(function_id):
            return ""
        limit = max(2, len(function_id) // 8)
        near = ((edits(function_id, known, limit), known) for known in self._snapshot.functions if self.allows(known))
        distance, known = min(near, default=(limit + 1, ""))
        return f"No such function is registered; did you mean `{known}`?" if distance <= limit else ""


FUTILE = "Calling it again will be denied again; go on without it or say what you needed it for."
"""What a denied model should do."""


def shown(globs: tuple[str, ...]) -> str:
    """Globs for a text, the first few."""
    more = ", …" if len(globs) > SHOWN_GLOBS else ""
    return ", ".join(f"`{glob}`" for glob in globs[:SHOWN_GLOBS]) + more


def edits(one: str, other: str, limit: int) -> int:
    """Insertions, deletions and replacements between two ids; `limit + 1` when there are more than `limit`."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    row = list(range(len(other) + 1))
    for i, char in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, against in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (char != against))
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)
