"""The frames that a provider sends: boundaries with snapshots, slim deltas, one terminal frame (siblings 5.5, 6)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from iii_kit.bus import Sink
from iii_kit.stream_frames import shown_arguments

_encode = msgspec.json.Encoder().encode
"""Frames hold text that was decoded from JSON or scrubbed, so nothing in them needs the bus's checks again."""

PING = '{"type":"ping"}'


class Emitter:
    """One answer on its way out; `message` is the answer so far."""

    def __init__(self, sink: Sink, provider: str, model: str, now_ms: int) -> None:
        self._sink = sink
        self.message: dict[str, Any] = {
            "role": "assistant",
            "content": [],
            "stop_reason": "end",
            "model": model,
            "provider": provider,
            "timestamp": now_ms,
        }
        self.ended = False
        self.sent = 0
        """Frames sent, for whoever keeps the stream alive."""
        self._open: Literal["", "text", "thinking"] = ""
        self._texts: list[str] = []
        self._calls: dict[Any, tuple[dict[str, Any], list[str]]] = {}

    @property
    def has_calls(self) -> bool:
        """True when the answer asks for a call."""
        return any(block["type"] == "function_call" for block in self.message["content"])

    @property
    def open_calls(self) -> list[Any]:
        """Keys of the calls whose arguments have not ended."""
        return list(self._calls)

    async def start(self) -> None:
        """The first frame."""
        await self._boundary("start")

    async def ping(self) -> None:
        """A sign of life."""
        await self._send(PING)

    async def text(self, delta: str) -> None:
        """More text."""
        await self._append("text", delta)

    async def thinking(self, delta: str) -> None:
        """More reasoning."""
        await self._append("thinking", delta)

    async def sign(self, signature: str) -> None:
        """End the open reasoning block with its signature; without one, an empty block that has nothing else."""
        if self._open != "thinking":
            await self.close_text()
            self.message["content"].append({"type": "thinking", "text": ""})
            self._open = "thinking"
            await self._boundary("thinking_start")
        self.message["content"][-1]["signature"] = signature
        await self.close_text()

    async def stored(self, block: dict[str, Any]) -> None:
        """A block that has no frames of its own; the next boundary shows it."""
        await self.close_text()
        self.message["content"].append(block)

    async def call(self, key: Any, call_id: str, function_id: str) -> None:
        """A call begins; `key` is how the upstream names it until it ends."""
        await self.close_text()
        block = {"type": "function_call", "id": call_id, "function_id": function_id, "arguments": None}
        self.message["content"].append(block)
        self._calls[key] = (block, [])
        await self._boundary("functioncall_start")

    async def arguments(self, key: Any, delta: str) -> None:
        """More of the argument text of an open call."""
        block, pieces = self._calls[key]
        pieces.append(delta)
        await self._frame({"type": "functioncall_delta", "delta": delta, "id": block["id"]})

    def argument_text(self, key: Any) -> str:
        """The argument text of an open call so far."""
        return "".join(self._calls[key][1])

    async def call_end(self, key: Any, arguments: Any) -> dict[str, Any]:
        """A call is complete; returns its block."""
        block, _ = self._calls.pop(key)
        block["arguments"] = arguments
        await self._boundary("functioncall_end")
        return block

    async def usage(self, usage: dict[str, Any]) -> None:
        """The usage so far."""
        self.message["usage"] = usage
        await self._frame({"type": "usage", "usage": usage})

    async def close_text(self) -> None:
        """End the open text or reasoning block."""
        if self._open:
            kind = self._open
            self._fold()
            self._open = ""
            await self._boundary(f"{kind}_end")

    async def done(self, stop_reason: str, native: str | None = None) -> None:
        """The end of a whole answer."""
        await self.close_text()
        self.message["stop_reason"] = stop_reason
        if native is not None:
            self.message["native_stop_reason"] = native
        await self._frame({"type": "stop", "stop_reason": stop_reason})
        self.ended = True
        await self._frame({"type": "done", "message": self.message})

    async def error(self, kind: str, text: str, retry_after_ms: int | None = None) -> None:
        """The end of a failed answer; what was streamed stays in it."""
        self._settle()
        self.message |= {"stop_reason": "error", "error_kind": kind, "error_message": text}
        frame: dict[str, Any] = {"type": "error", "error": self.message}
        if retry_after_ms is not None:
            frame["retry_after_ms"] = retry_after_ms
        self.ended = True
        await self._frame(frame)

    async def aborted(self) -> None:
        """The end of an answer that was stopped."""
        self._settle()
        self.message["stop_reason"] = "aborted"
        self.ended = True
        await self._frame({"type": "done", "message": self.message})

    async def _append(self, kind: Literal["text", "thinking"], delta: str) -> None:
        if not delta:
            return
        if self._open != kind:
            await self.close_text()
            self.message["content"].append({"type": kind, "text": ""})
            self._open = kind
            await self._boundary(f"{kind}_start")
        self._texts.append(delta)
        await self._frame({"type": f"{kind}_delta", "delta": delta})

    def _fold(self) -> None:
        if self._texts:
            block = next(block for block in reversed(self.message["content"]) if block["type"] == self._open)
            block["text"] += "".join(self._texts)
            self._texts.clear()

    def _settle(self) -> None:
        """Bring the message up to what was streamed, open blocks included."""
        self._fold()
        self._open = ""
        for block, pieces in self._calls.values():
            if pieces:
                block["arguments"] = shown_arguments("".join(pieces))
            else:
                block["arguments"] = {"_raw": ""}
        self._calls.clear()

    async def _boundary(self, kind: str) -> None:
        self._fold()
        await self._frame({"type": kind, "partial": self.message})

    async def _frame(self, frame: dict[str, Any]) -> None:
        await self._send(_encode(frame).decode())

    async def _send(self, item: str) -> None:
        self.sent += 1
        await self._sink.send(item)
