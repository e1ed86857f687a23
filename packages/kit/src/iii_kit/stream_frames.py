"""Frames of a streamed generation and what a reader makes of them (siblings 5.5).

Router, providers and the harness share this one accumulation. A frame is decoded shallowly: snapshots stay JSON text
until somebody asks for the partial message, so passing deltas on costs one small decode each.
"""

from __future__ import annotations

from json import JSONDecodeError, JSONDecoder
from typing import Any, cast

import msgspec

TERMINAL = frozenset({"done", "error"})
"""Types of the one frame that ends a stream."""

BEFORE_CONTENT = frozenset({"start", "usage", "ping", "done", "error"})
"""Types that are no content: until another one was passed on, a failed attempt may be made again."""

_OPEN_BLOCKS = {"text_start": "text", "text_delta": "text", "thinking_start": "thinking", "thinking_delta": "thinking"}
"""The block that is still open after a frame with a snapshot."""

_PLACEHOLDERS: tuple[Any, ...] = (None, "", {})
_EMPTY = msgspec.Raw(b"")


class Frame(msgspec.Struct, gc=False):
    """One frame; snapshots are undecoded JSON."""

    type: str
    delta: str | None = None
    id: str | None = None
    partial: msgspec.Raw = _EMPTY
    usage: dict[str, Any] | None = None
    message: msgspec.Raw = _EMPTY
    error: msgspec.Raw = _EMPTY
    retry_after_ms: float | None = None

    def final_message(self) -> dict[str, Any] | None:
        """The assistant message of a terminal frame; None when it carries no object."""
        return _object(self.message if self.type == "done" else self.error)


_decode_frame = msgspec.json.Decoder(Frame).decode
_decode = msgspec.json.Decoder().decode
_scan = JSONDecoder().raw_decode


class FrameReader:
    """The answer so far: the last block snapshot and the deltas after it."""

    __slots__ = ("_arguments", "_base", "_kind", "_snapshot", "_texts", "ended", "usage")

    def __init__(self) -> None:
        self.ended: dict[str, Any] | None = None
        """The message of the terminal frame, once it came."""
        self.usage: dict[str, Any] | None = None
        """The latest `usage` frame's counts."""
        self._snapshot = b""
        self._base: dict[str, Any] | None = None
        self._kind = ""
        self._texts: list[str] = []
        self._arguments: dict[str, list[str]] = {}

    def feed(self, item: str | bytes) -> Frame | None:
        """Take one channel item; returns its frame, or None for one that does not parse and is skipped."""
        try:
            frame = _decode_frame(item)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return None
        kind = frame.type
        if kind in TERMINAL:
            self.ended = frame.final_message()
        elif kind == "usage":
            self.usage = frame.usage
        elif frame.partial is not _EMPTY and self._boundary(frame):
            if kind == "functioncall_delta":
                self._take_arguments(frame)
        elif frame.delta:
            if kind == "functioncall_delta":
                self._take_arguments(frame)
            elif kind.endswith("_delta"):
                self._append(kind[: -len("_delta")], frame.delta)
        return frame

    def partial(self) -> dict[str, Any] | None:
        """The assistant message so far, a fresh value; None before the first snapshot."""
        self._fold()
        if self._base is None:
            return None
        message: dict[str, Any] = _decode(msgspec.json.encode(self._base))
        for block in _blocks(message):
            pieces = self._arguments.get(block.get("id", ""))
            if pieces and block.get("type") == "function_call" and block.get("arguments") in _PLACEHOLDERS:
                block["arguments"] = shown_arguments("".join(pieces))
        return message

    def raw_arguments(self) -> dict[str, str]:
        """The raw argument text of every call that has streamed some, by call id."""
        return {call: "".join(pieces) for call, pieces in self._arguments.items()}

    def _boundary(self, frame: Frame) -> bool:
        """Begin anew from the snapshot of a frame; False when it has none."""
        snapshot = bytes(frame.partial)
        if snapshot == b"null":
            return False
        self._snapshot = snapshot
        self._base = None
        self._texts.clear()
        self._kind = _OPEN_BLOCKS.get(frame.type, "")
        return True

    def _take_arguments(self, frame: Frame) -> None:
        call = frame.id if frame.id is not None else self._newest_call()
        if frame.delta:
            self._arguments.setdefault(call, []).append(frame.delta)

    def _append(self, kind: str, delta: str) -> None:
        if kind != self._kind:
            self._fold()
            if self._base is None:
                return
            self._base["content"].append({"type": kind, "text": ""})
            self._kind = kind
        self._texts.append(delta)

    def _fold(self) -> None:
        """Decode the snapshot and put the deltas after it into its trailing block."""
        if self._base is None and self._snapshot:
            self._base = _object(msgspec.Raw(self._snapshot))
            if self._base is not None and not isinstance(self._base.get("content"), list):
                self._base["content"] = []
        if not self._texts or self._base is None:
            return
        content = cast("list[Any]", self._base["content"])
        last = cast("dict[str, Any]", content[-1]) if content and isinstance(content[-1], dict) else {}
        if last.get("type") != self._kind:
            last = {"type": self._kind, "text": ""}
            content.append(last)
        last["text"] = str(last.get("text") or "") + "".join(self._texts)
        self._texts.clear()

    def _newest_call(self) -> str:
        self._fold()
        calls = [block for block in _blocks(self._base or {}) if block.get("type") == "function_call"]
        return str(calls[-1].get("id", "")) if calls else ""


def shown_arguments(text: str) -> Any:
    """The arguments that raw text stands for so far.

    Complete JSON is its value. Otherwise the complete leading fields with `_partial: true`, or, when there are none,
    `{"_raw": text}`: the text of a call is never lost and never becomes `{}`.
    """
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        fields = _leading_fields(text)
        return {**fields, "_partial": True} if fields else {"_raw": text}


def _leading_fields(text: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        return fields
    try:
        while text[at : at + 1] in ("{", ","):
            key, at = _scan(text, _skip(text, at + 1))
            at = _skip(text, at)
            if not isinstance(key, str) or text[at : at + 1] != ":":
                break
            value, at = _scan(text, _skip(text, at + 1))
            at = _skip(text, at)
            if text[at : at + 1] not in (",", "}"):
                break
            fields[key] = value
    except (JSONDecodeError, RecursionError):
        pass
    return fields


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _object(raw: msgspec.Raw) -> dict[str, Any] | None:
    value = None if raw is _EMPTY else _decode(raw)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for block in cast("list[Any]", message.get("content") or []) if isinstance(block, dict)]
