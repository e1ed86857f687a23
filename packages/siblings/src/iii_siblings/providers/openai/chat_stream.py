"""The stream of Chat Completions, turned into frames (siblings 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from iii_kit.encoding import encode
from iii_kit.world import Ids
from iii_siblings.providers.arguments import final_arguments
from iii_siblings.providers.emitter import Emitter
from iii_siblings.providers.failure import UpstreamFailure
from iii_siblings.providers.function_names import FunctionNames
from iii_siblings.providers.openai.errors import kind_of
from iii_siblings.providers.openai.usage import usage_counts
from iii_siblings.providers.payload import count, field, parsed, scrub

_REASONS = {"stop": "end", "length": "length", "tool_calls": "function_call", "function_call": "function_call"}
_THINKING = ("reasoning_content", "reasoning")


@dataclass(slots=True)
class _Call:
    """A call that streams: the server's own id, and the name as far as it has come."""

    key: str
    server_id: str


class ChatStream:
    """Takes the data of events; `finish` ends the answer when the bytes have ended."""

    def __init__(self, emitter: Emitter, names: FunctionNames, ids: Ids) -> None:
        self._emitter = emitter
        self._names = names
        self._ids = ids
        self._calls: dict[int, _Call] = {}
        self._taken: set[str] = set()
        self._reason: str | None = None
        self.over = False
        """True after `[DONE]`: nothing more is to be read."""

    async def take(self, data: bytes) -> None:
        """Take the data of one event. Raises `UpstreamFailure`."""
        if data.strip() == b"[DONE]":
            self.over = True
            return
        try:
            chunk = parsed(data)
        except (ValueError, RecursionError):
            raise UpstreamFailure("transient", "openai sent an unreadable event in its stream") from None
        if field(chunk, "error"):
            raise UpstreamFailure(kind_of(None, chunk), "openai reported an error in its stream")
        await self._usage(field(chunk, "usage"))
        choice = field(chunk, "choices", 0)
        await self._delta(field(choice, "delta"))
        reason = field(choice, "finish_reason")
        if isinstance(reason, str) and reason:
            self._reason = reason

    async def finish(self) -> None:
        """End the answer. Raises `UpstreamFailure` when the server did not say that it was whole."""
        if self._reason is None:
            raise UpstreamFailure("transient", "openai stream ended before it was finished")
        by_length = self._reason == "length"
        for key in self._emitter.open_calls:
            text = self._emitter.argument_text(key)
            await self._emitter.call_end(key, final_arguments(text, cut_by_length=by_length))
        reason = _REASONS.get(self._reason, "end")
        if reason != "length":
            reason = "function_call" if self._emitter.has_calls else "end"
        await self._emitter.done(reason, self._reason)

    async def _delta(self, delta: Any) -> None:
        if delta is None:
            return
        for name in _THINKING:
            thinking = field(delta, name)
            if isinstance(thinking, str):
                await self._emitter.thinking(scrub(thinking))
                break
        for name in ("content", "refusal"):
            text = field(delta, name)
            if isinstance(text, str):
                await self._emitter.text(scrub(text))
        calls = field(delta, "tool_calls")
        for position, call in enumerate(cast("list[Any]", calls) if isinstance(calls, list) else []):
            await self._call(call, position)

    async def _call(self, delta: Any, position: int) -> None:
        index = count(delta, "index")
        index = position if index is None else index
        server_id = str(field(delta, "id") or "")
        name = field(delta, "function", "name")
        known = self._calls.get(index)
        fresh = known is None or (bool(server_id) and server_id != known.server_id and bool(name))
        if fresh:
            known = await self._begin(index, server_id, str(name or ""))
        assert known is not None
        text = field(delta, "function", "arguments")
        if isinstance(text, dict):
            text = encode(cast("dict[str, Any]", text)).decode()
        if isinstance(text, str) and text:
            await self._emitter.arguments(known.key, scrub(text))

    async def _begin(self, index: int, server_id: str, name: str) -> _Call:
        key = server_id if server_id and server_id not in self._taken else f"call_{self._ids.hex()}"
        self._taken.add(key)
        call = self._calls[index] = _Call(key, server_id)
        await self._emitter.call(key, key, self._names.decode(scrub(name)))
        return call

    async def _usage(self, usage: Any) -> None:
        counts = usage_counts(
            count(usage, "prompt_tokens"),
            count(usage, "prompt_tokens_details", "cached_tokens"),
            count(usage, "completion_tokens"),
            count(usage, "completion_tokens_details", "reasoning_tokens"),
        )
        if counts and counts != self._emitter.message.get("usage"):
            await self._emitter.usage(dict(counts))
