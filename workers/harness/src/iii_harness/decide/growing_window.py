"""The window of a path that only grows, kept between steps: a step looks at what is new (engineering notes 6, "How").

Equal to `window` and `messages_of` for every path; what they alone handle (moves, compactions, a reply that is begun
again, calls without results) is left to them. A message is encoded once and goes into every later request as that JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from iii_harness.decide.plan import calls_of
from iii_harness.decide.window import COMPACTION, ORDER, Move, message_of, messages_of, window
from iii_harness.ports import Item
from iii_kit.encoding import encode

SPECIAL = frozenset({ORDER, COMPACTION})


class GrowingWindow:
    """Messages of one path, extended by every call of `of` with the same, longer path."""

    def __init__(self) -> None:
        self._count = 0
        self._messages: list[Any] = []
        self._open: set[Any] = set()
        self._plain = True
        self.summary: str | None = None
        """The summary of what lies before the messages that `of` gave last."""

    def of(self, path: Sequence[Item], *, own_reply: str, watermark: str | None) -> tuple[list[Any], Move | None]:
        """The messages to send, as values or as encoded JSON, in a list of the caller's own; and a move that is new."""
        fresh = path[self._count :]
        late = self._late(fresh) if self._count else window(path, own_reply=own_reply, watermark=watermark).move
        if self._plain:
            self._plain = not late and all(self._extends(item, own_reply) for item in fresh)
        self._count = len(path)
        if self._plain and not self._open:
            return list(self._messages), None
        view = window(path, own_reply=own_reply, watermark=watermark)
        self.summary = view.summary
        return messages_of(view.entries), view.move

    def _late(self, fresh: Sequence[Item]) -> bool:
        """True when a user message may stand between a reply and its results: before the last of them."""
        roles = [item.message.get("role") for item in fresh if item.message is not None]
        last = max((at for at, role in enumerate(roles) if role in ("assistant", "function_result")), default=-1)
        return "user" in roles[: last + 1]

    def _extends(self, item: Item, own_reply: str) -> bool:
        """Add one entry; False for one that this class does not handle."""
        if item.custom_type in SPECIAL or item.entry_id == own_reply:
            return False
        message = message_of(item)
        if message is None:
            return True
        role = message.get("role")
        if role == "assistant":
            if self._open:
                return False
            self._open = {call.get("id") for call in calls_of(message.get("content"))}
        elif role == "function_result":
            self._open.discard(message.get("function_call_id"))
        self._messages.append(msgspec.Raw(encode(message)))
        return True
