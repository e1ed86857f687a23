"""The window of a path that only grows, kept between steps: a step looks at what is new (engineering notes 6, "How").

Equal to `window` for every path; what it alone handles (moves, compactions, a reply that is begun again, calls without
results) makes it look at the whole path once, and from there the window grows on: after a compaction it is as short as
what that left. A message is encoded once and goes into every later request as that JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from iii_harness.decide.plan import calls_of
from iii_harness.decide.window import COMPACTION, ORDER, Entry, Move, Window, message_of, messages_of, named, window
from iii_harness.ports import Item, Message
from iii_kit.encoding import encode

SPECIAL = frozenset({ORDER, COMPACTION})
ANSWERS = frozenset({"assistant", "function_result"})

_MESSAGE = attrgetter("message")


class GrowingWindow:
    """The window of one path, extended by every call with the same, longer path."""

    def __init__(self) -> None:
        self._count = 0
        self._entries: list[Entry] = []
        self._open: set[Any] = set()
        self._plain = False
        self._named: set[str] = set()
        self._head_tokens: int | None = None
        self.summary: str | None = None
        """The summary of what lies before the window that was given last."""

    def of(self, path: Sequence[Item], *, own_reply: str, watermark: str | None) -> tuple[list[Any], Move | None]:
        """The messages to send, as values or as encoded JSON, in a list of the caller's own; and a move that is new."""
        seen = self.view(path, own_reply=own_reply, watermark=watermark)
        if self._plain and not self._open:
            return list(map(_MESSAGE, seen.entries)), None
        if self._plain:
            seen = window(path, own_reply=own_reply, watermark=watermark)
        return messages_of(seen.entries), seen.move

    def view(self, path: Sequence[Item], *, own_reply: str, watermark: str | None) -> Window:
        """The window itself, its messages as values or as encoded JSON: nothing is repaired."""
        fresh = path[self._count :]
        first, self._count = not self._count, len(path)
        if self._plain and not first and not self._late(fresh) and all(self._extends(i, own_reply) for i in fresh):
            return Window(list(self._entries), self.summary, None, self._head_tokens)
        seen = window(path, own_reply=own_reply, watermark=watermark)
        self._plain = seen.move is None and self._restarts(path, seen, own_reply)
        self.summary, self._head_tokens = seen.summary, seen.head_tokens
        return Window(list(self._entries), seen.summary, None, seen.head_tokens) if self._plain else seen

    def _late(self, fresh: Sequence[Item]) -> bool:
        """True when a user message may stand between a reply and its results: before the last of them."""
        spoken = False
        for item in fresh:
            role = None if item.message is None else item.message.get("role")
            if role == "user":
                spoken = True
            elif spoken and role in ANSWERS:
                return True
        return False

    def _extends(self, item: Item, own_reply: str) -> bool:
        """Add one entry; False for one that this class does not handle."""
        if item.custom_type in SPECIAL or item.entry_id == own_reply or item.entry_id in self._named:
            return False
        message = message_of(item)
        if message is None:
            return True
        if not self._answers(message):
            return False
        self._entries.append(_encoded(item.entry_id, message))
        return True

    def _restarts(self, path: Sequence[Item], seen: Window, own_reply: str) -> bool:
        """Take over a window that was made anew; False for one that cannot simply grow on."""
        self._open = set()
        if any(item.entry_id == own_reply for item in path):
            return False
        if not all(self._answers(entry.message) for entry in seen.entries):
            return False
        here = {item.entry_id for item in path}
        self._named = set(_named_by(path)) - here
        self._entries = [_encoded(entry.entry_id, entry.message) for entry in seen.entries]
        return True

    def _answers(self, message: Message) -> bool:
        """Follow calls and their results; False for a reply that comes before the calls of the last are answered."""
        role = message.get("role")
        if role == "assistant":
            if self._open:
                return False
            self._open = {call.get("id") for call in calls_of(message.get("content"))}
        elif role == "function_result":
            self._open.discard(message.get("function_call_id"))
        return True


def _encoded(entry_id: str, message: Message) -> Entry:
    raw: Any = msgspec.Raw(encode(message))
    return Entry(entry_id, raw)


def _named_by(path: Sequence[Item]) -> Iterable[str]:
    """Ids that moves and compactions of the path name: one of them may yet come."""
    return (entry_id for item in path if item.custom_type in SPECIAL for entry_id in named(item))
