"""Server-sent events, parsed as they arrive: bytes in, whole events out, however the bytes were cut."""

from __future__ import annotations

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""An event that is larger ends the stream."""


class EventTooLarge(Exception):
    """An event grew past the limit."""


class EventStream:
    """Collects lines to events. Only the data of an event matters to providers of models."""

    __slots__ = ("_data", "_line", "_size", "_skip_newline", "_started")

    def __init__(self) -> None:
        self._line = b""
        self._data: list[bytes] = []
        self._size = 0
        self._skip_newline = False
        self._started = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of every event that `chunk` completes."""
        if self._skip_newline and chunk:
            self._skip_newline = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]
        events: list[bytes] = []
        for line in chunk.splitlines(keepends=True):
            whole = line[-1:] in (b"\n", b"\r")
            if not whole:
                self._line += line
                self._grow(len(line))
                continue
            complete = self._line + line.rstrip(b"\r\n")
            self._line = b""
            self._take(complete, events)
            self._skip_newline = line[-1:] == b"\r"
        return events

    def flush(self) -> list[bytes]:
        """At the end of the bytes: the event whose lines are complete but whose blank line never came."""
        events: list[bytes] = []
        self._take(b"", events)
        return events

    def _take(self, line: bytes, events: list[bytes]) -> None:
        if not self._started:
            self._started = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            if self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
            self._size = 0
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._grow(len(value))
            self._data.append(value.removeprefix(b" "))

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > MAX_EVENT_BYTES:
            raise EventTooLarge(f"an event of the stream is larger than {MAX_EVENT_BYTES} bytes")
