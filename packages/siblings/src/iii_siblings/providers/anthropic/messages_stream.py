"""The stream of the Messages API, turned into frames (siblings 7).

Blocks are told apart by their index: compatible servers let one begin before the one before it has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from iii_kit.encoding import encode
from iii_kit.world import Ids
from iii_siblings.providers import payload
from iii_siblings.providers.anthropic.errors import kind_of
from iii_siblings.providers.arguments import final_arguments
from iii_siblings.providers.emitter import Emitter
from iii_siblings.providers.failure import UpstreamFailure
from iii_siblings.providers.function_names import FunctionNames
from iii_siblings.providers.payload import count, scrub

_COUNTS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}
_READABLE_ENDS = ("end_turn", "tool_use")
"""Stop reasons beside which a call is one."""


@dataclass(slots=True)
class _Block:
    """A block that streams."""

    kind: str
    signature: list[str] = field(default_factory=list[str])
    content: dict[str, Any] | None = None
    """Its place in the answer, once it has one."""
    given: str = ""
    """Arguments that came whole with its beginning."""


class MessagesStream:
    """Takes the data of events; `finish` ends the answer when the bytes have ended."""

    def __init__(self, emitter: Emitter, names: FunctionNames, ids: Ids) -> None:
        self._emitter = emitter
        self._names = names
        self._ids = ids
        self._blocks: dict[int, _Block] = {}
        self._newest = -1
        self._taken: set[str] = set()
        self._last_call: tuple[dict[str, Any], str] | None = None
        self._usage: dict[str, int] = {}
        self._reason: str | None = None
        self.over = False
        """True after `message_stop`: nothing more is to be read."""

    async def take(self, data: bytes) -> None:
        """Take the data of one event. Raises `UpstreamFailure`."""
        if self.over:
            return
        try:
            event = payload.parsed(data)
        except (ValueError, RecursionError):
            raise UpstreamFailure("transient", "anthropic sent an unreadable event in its stream") from None
        match payload.field(event, "type"):
            case "content_block_delta":
                await self._delta(self._index(event), payload.field(event, "delta"))
            case "content_block_start":
                await self._begin(self._index(event), payload.field(event, "content_block"))
            case "content_block_stop":
                await self._stop(self._index(event))
            case "message_start":
                await self._count(payload.field(event, "message", "usage"))
            case "message_delta":
                reason = payload.field(event, "delta", "stop_reason")
                self._reason = scrub(reason) if isinstance(reason, str) and reason else self._reason
                await self._count(payload.field(event, "usage"))
            case "message_stop":
                self.over = True
            case "ping":
                await self._emitter.ping()
            case kind:
                if kind == "error" or payload.field(event, "error"):
                    raise UpstreamFailure(kind_of(None, event), "anthropic reported an error in its stream")

    async def finish(self) -> None:
        """End the answer. Raises `UpstreamFailure` when the server did not say that it was whole."""
        if not self.over:
            raise UpstreamFailure("transient", "anthropic stream ended before message_stop")
        by_length = self._reason == "max_tokens"
        for index in self._emitter.open_calls:
            await self._end_call(index)
        if by_length:
            self._show_cut()
            reason = "length"
        elif self._emitter.has_calls and self._reason in (None, *_READABLE_ENDS):
            reason = "function_call"
        else:
            reason = "end"
        await self._emitter.done(reason, self._reason)

    def _index(self, event: Any) -> int:
        index = count(event, "index")
        return self._newest if index is None else index

    async def _begin(self, index: int, start: Any) -> None:
        kind = payload.field(start, "type")
        block = self._blocks[index] = _Block(str(kind))
        self._newest = index
        match kind:
            case "text":
                await self._emitter.close_text()
                await self._emitter.text(_string(start, "text"))
            case "thinking":
                await self._emitter.close_text()
                await self._think(block, _string(start, "thinking"))
                block.signature.append(_string(start, "signature"))
            case "redacted_thinking":
                await self._emitter.stored({"type": "redacted_thinking", "data": _string(start, "data")})
            case "tool_use":
                given = payload.field(start, "input")
                block.given = encode(given).decode() if given else ""
                await self._emitter.call(index, self._unique(start), self._names.decode(_string(start, "name")))
            case _:
                pass  # blocks of functions that run at the server, which nobody asks for

    async def _delta(self, index: int, delta: Any) -> None:
        match payload.field(delta, "type"):
            case "text_delta":
                await self._emitter.text(_string(delta, "text"))
            case "thinking_delta":
                await self._think(self._blocks.setdefault(index, _Block("thinking")), _string(delta, "thinking"))
            case "signature_delta":
                self._blocks.setdefault(index, _Block("thinking")).signature.append(_string(delta, "signature"))
            case "input_json_delta":
                text = _string(delta, "partial_json")
                if text and index in self._emitter.open_calls:
                    await self._emitter.arguments(index, text)
            case _:
                pass  # citations and what is yet to come: nothing that a transcript keeps

    async def _think(self, block: _Block, text: str) -> None:
        if text:
            await self._emitter.thinking(text)
            block.content = self._emitter.message["content"][-1]

    async def _stop(self, index: int) -> None:
        block = self._blocks.get(index)
        if index in self._emitter.open_calls:
            await self._end_call(index)
        elif block is not None and block.kind == "thinking" and (signature := "".join(block.signature)):
            if index == self._newest:
                await self._emitter.sign(signature)
            elif block.content is not None:
                block.content["signature"] = signature
        elif index == self._newest:
            await self._emitter.close_text()

    async def _end_call(self, index: int) -> None:
        text = self._emitter.argument_text(index) or self._blocks[index].given
        self._last_call = (await self._emitter.call_end(index, final_arguments(text, cut_by_length=False)), text)

    def _show_cut(self) -> None:
        """Where the ceiling was met inside the arguments of the last call, show what there is of them."""
        if self._last_call is not None and self._emitter.message["content"][-1] is self._last_call[0]:
            block, text = self._last_call
            block["arguments"] = final_arguments(text, cut_by_length=True)

    def _unique(self, start: Any) -> str:
        call_id = _string(start, "id")
        if not call_id or call_id in self._taken:
            call_id = f"toolu_{self._ids.hex()}"
        self._taken.add(call_id)
        return call_id

    async def _count(self, usage: Any) -> None:
        """The counts of the end replace those of the beginning, as far as they are told again."""
        told = {name: found for name, key in _COUNTS.items() if (found := count(usage, key)) is not None}
        if told and {**self._usage, **told} != self._usage:
            self._usage |= told
            await self._emitter.usage(dict(self._usage))


def _string(value: Any, name: str) -> str:
    found = payload.field(value, name)
    return scrub(found) if isinstance(found, str) else ""
