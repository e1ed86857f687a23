"""Text that arrives in pieces, handed on in whole lines: what can be printed above a prompt."""

from __future__ import annotations

from collections.abc import Callable


class Lines:
    """Gives `write` whole lines, broken between words where they are wider than the screen."""

    def __init__(self, write: Callable[[str], None], width: Callable[[], int]) -> None:
        self._write = write
        self._width = width
        self._rest = ""

    def __call__(self, text: str) -> None:
        """Take a piece; what is no whole line yet waits for more."""
        *whole, self._rest = (self._rest + text).split("\n")
        for line in whole:
            self._write(self._broken(line) + "\n")
        self._rest = self._broken(self._rest)

    def _broken(self, line: str) -> str:
        """Write what does not fit into one line of the screen; returns the end of it, which does."""
        width = max(self._width(), 20)
        while len(line) > width:
            at = line.rfind(" ", 1, width + 1)
            cut = width if at < 0 else at
            self._write(line[:cut] + "\n")
            line = line[cut:].removeprefix(" ")
        return line
