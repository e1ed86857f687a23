"""Errors that cross the bus (engine spec 5.4, siblings 1.2).

A failed call is `code` plus `message`. Over `iii-sdk` a handler cannot choose the wire code, so the codes of
workers travel as a prefix of the message; `CodedError` keeps both forms equal on every bus and callers decide
with `matches`, never by comparing texts.
"""

from __future__ import annotations


class BusError(Exception):
    """A failed call, as its caller sees it: wire `code`, wire `message`, and the function that was called."""

    def __init__(self, code: str, message: str, function_id: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.function_id = function_id

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def matches(self, code: str) -> bool:
        """True when the error is `code`, be it as its wire code or inside its text."""
        return self.code == code or code in self.message


class CodedError(BusError):
    """What a worker raises: on the wire `code` where the bus allows it, and always `"<code>: <text>"` as message."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(code, f"{code}: {text}")
        self.text = text

    def __str__(self) -> str:
        return self.message


class CategoryError(BusError):
    """What a worker raises whose errors are told apart by the first words of their text: `"<category>: <text>"`."""

    def __init__(self, category: str, text: str) -> None:
        super().__init__("invocation_failed", f"{category}: {text}")
        self.category = category

    def __str__(self) -> str:
        return self.message


class PartialSequence(BusError):
    """`Caller.sequence` stopped: the results of the calls that were done, and the error of the one that failed."""

    def __init__(self, done: list[object], cause: BusError) -> None:
        super().__init__(cause.code, cause.message, cause.function_id)
        self.done = done
        self.cause = cause


class EpochEnded(BusError):
    """The connection that this work belongs to is gone; whatever it still wanted to do must not be sent."""

    def __init__(self) -> None:
        super().__init__("epoch_ended", "the connection of this work is gone; its state is read anew by the next one")


class Unencodable(BusError):
    """A value that strict JSON cannot carry (engine spec 2.3): refused before it is sent, with the place."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__("unencodable", f"{path}: {problem}")
        self.path = path


class PayloadTooLarge(BusError):
    """An encoded message over the 64 MiB limit of the wire (engine spec 2.4)."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__("payload_too_large", f"encoded payload is {size} bytes, over the limit of {limit} bytes")
