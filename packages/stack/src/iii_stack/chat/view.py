"""What a chat shows while a turn runs: text as it grows, calls as they begin, results as they come.

Events arrive at least once and in no order, so the view keeps what it has shown of every entry and shows the rest; it
is right again whenever it is given the whole entry once more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iii_stack.chat.entries import QUIET, custom_line, print_call, print_custom, print_result, text_of

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(slots=True)
class Shown:
    """What has been shown of one entry."""

    revision: int = -1
    text: str = ""
    calls: set[str] = field(default_factory=set[str])
    done: bool = False


class ChatView:
    """Answers go to `write`, everything else to `aside`."""

    def __init__(self, write: Callable[[str], None], aside: Console) -> None:
        self._write = write
        self._aside = aside
        self._shown: dict[str, Shown] = {}
        self._open_line = False
        self._away = False
        self._writing: Shown | None = None
        self._told: list[str] = []
        self.calls = 0

    def entry(self, entry: dict[str, Any], *, revision: int | None = None, final: bool = False) -> None:
        """Show what is new of an entry; `final` when nothing of it will change any more."""
        shown = self._shown.setdefault(entry["entry_id"], Shown())
        if revision is not None:
            if revision <= shown.revision:
                return
            shown.revision = revision
        message = entry.get("message")
        if message is None:
            if entry["custom"]["custom_type"] in QUIET:
                return
            self._once(shown, lambda: self._tell(entry["custom"]))
        elif message["role"] == "function_result":
            self._once(shown, lambda: print_result(self._aside, message))
        elif message["role"] == "assistant":
            self._assistant(shown, message, final=final or message["stop_reason"] == "function_call")

    def has_told(self, text: str) -> bool:
        """True when an entry of the loop has said so already."""
        return any(text in told for told in self._told)

    def skip(self, entry_id: str) -> None:
        """Never show this entry: it was there before."""
        self._shown[entry_id] = Shown(revision=sys.maxsize, done=True)

    def lost(self) -> None:
        """The connection is gone: say so once. The answer is left as it is: its rest follows where it was cut."""
        if not self._away:
            self._away = True
            if self._open_line:
                self._aside.print()
            self._aside.print("connection lost, waiting for the stack (Ctrl-C leaves)", style="yellow", markup=False)

    def found(self) -> None:
        """The connection is back."""
        if self._away:
            self._away = False
            self._aside.print("connected again", style="dim", markup=False)

    def end_line(self) -> None:
        """Begin whatever comes next on a line of its own."""
        if self._open_line:
            self._write("\n")
            self._open_line = False

    def _assistant(self, shown: Shown, message: dict[str, Any], *, final: bool) -> None:
        if shown.done:
            return
        text = text_of(message["content"])
        if len(text) > len(shown.text) and text.startswith(shown.text):
            if self._writing is not shown:
                self.end_line()
            self._write(text[len(shown.text) :])
            self._open_line = not text.endswith("\n")
            self._writing, shown.text = shown, text
        elif not shown.text.startswith(text):
            self.end_line()
            self._write(text)
            self._open_line = not text.endswith("\n")
            self._writing, shown.text = shown, text
        if final:
            for block in message["content"]:
                if block["type"] == "function_call" and block["id"] not in shown.calls:
                    shown.calls.add(block["id"])
                    self.calls += 1
                    self.end_line()
                    print_call(self._aside, block)

    def _tell(self, custom: dict[str, Any]) -> None:
        self._told.append(custom_line(custom))
        print_custom(self._aside, custom)

    def _once(self, shown: Shown, show: Callable[[], None]) -> None:
        if not shown.done:
            shown.done = True
            self.end_line()
            show()
