"""The stream of the Responses API, turned into frames (siblings 8).

Items are told apart by their id, else by their position: compatible servers send one or the other.
"""

from __future__ import annotations

from typing import Any, cast

from iii_kit.world import Ids
from iii_siblings.providers.arguments import final_arguments
from iii_siblings.providers.emitter import Emitter
from iii_siblings.providers.failure import UpstreamFailure
from iii_siblings.providers.function_names import FunctionNames
from iii_siblings.providers.openai.errors import kind_of
from iii_siblings.providers.openai.usage import usage_counts
from iii_siblings.providers.payload import count, field, parsed, scrub

_THINKING = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_TEXT = ("response.output_text.delta", "response.refusal.delta")


class ResponsesStream:
    """Takes the data of events; `finish` ends the answer when the bytes have ended."""

    def __init__(self, emitter: Emitter, names: FunctionNames, ids: Ids) -> None:
        self._emitter = emitter
        self._names = names
        self._ids = ids
        self._taken: set[str] = set()
        self._streamed: set[Any] = set()
        self._keys: dict[str, Any] = {}
        self._response: Any = None
        self.over = False
        """True after the closing event: nothing more is to be read."""

    async def take(self, data: bytes) -> None:
        """Take the data of one event. Raises `UpstreamFailure`."""
        if data.strip() == b"[DONE]":
            return
        try:
            event = parsed(data)
        except (ValueError, RecursionError):
            raise UpstreamFailure("transient", "openai sent an unreadable event in its stream") from None
        kind = field(event, "type")
        if kind in _TEXT:
            self._streamed.add(_key(event))
            await self._emitter.text(_string(field(event, "delta")))
        elif kind in _THINKING:
            await self._emitter.thinking(_string(field(event, "delta")))
        elif kind == "response.output_item.added":
            await self._added(event)
        elif kind == "response.function_call_arguments.delta":
            await self._arguments(event)
        elif kind == "response.output_item.done":
            await self._done(event)
        elif kind in ("response.completed", "response.incomplete"):
            self._response = field(event, "response")
            self.over = True
        elif kind in ("response.failed", "error") or (kind is None and field(event, "error")):
            self._fail(event)

    async def finish(self) -> None:
        """End the answer. Raises `UpstreamFailure` when the server did not say that it was whole."""
        if not self.over:
            raise UpstreamFailure("transient", "openai stream ended before response.completed")
        status = field(self._response, "status")
        why = field(self._response, "incomplete_details", "reason")
        by_length = why == "max_output_tokens"
        for key in self._emitter.open_calls:
            text = self._emitter.argument_text(key)
            await self._emitter.call_end(key, final_arguments(text, cut_by_length=by_length))
        await self._usage(field(self._response, "usage"))
        reason = "length" if by_length else "function_call" if self._emitter.has_calls else "end"
        native = why if isinstance(why, str) else status
        await self._emitter.done(reason, native if isinstance(native, str) else None)

    async def _added(self, event: Any) -> None:
        item = field(event, "item")
        if field(item, "type") == "function_call":
            await self._begin(_item_key(event), item)

    async def _begin(self, key: Any, item: Any) -> None:
        call_id = _string(field(item, "call_id") or field(item, "id"))
        if not call_id or call_id in self._taken:
            call_id = f"call_{self._ids.hex()}"
        self._taken.add(call_id)
        self._keys[_string(field(item, "call_id"))] = key
        await self._emitter.call(key, call_id, self._names.decode(_string(field(item, "name"))))

    async def _arguments(self, event: Any) -> None:
        key, delta = _key(event), _string(field(event, "delta"))
        opened = self._emitter.open_calls
        if key not in opened:
            if not opened:
                return
            key = opened[-1]
        if delta:
            await self._emitter.arguments(key, delta)

    async def _done(self, event: Any) -> None:
        item, key = field(event, "item"), _item_key(event)
        if field(item, "type") == "function_call":
            if key not in self._emitter.open_calls:
                key = self._keys.get(_string(field(item, "call_id")), key)
            if key not in self._emitter.open_calls:
                await self._begin(key, item)
            given = field(item, "arguments")
            text = given if isinstance(given, str) and given else self._emitter.argument_text(key)
            by_length = field(item, "status") == "incomplete"
            await self._emitter.call_end(key, final_arguments(scrub(text), cut_by_length=by_length))
        elif field(item, "type") == "message" and key not in self._streamed:
            parts = field(item, "content")
            for part in cast("list[Any]", parts) if isinstance(parts, list) else []:
                await self._emitter.text(_string(field(part, "text") or field(part, "refusal")))

    def _fail(self, event: Any) -> None:
        error = field(event, "response", "error") or event
        raise UpstreamFailure(kind_of(None, error), "openai reported an error in its stream")

    async def _usage(self, usage: Any) -> None:
        counts = usage_counts(
            count(usage, "input_tokens"),
            count(usage, "input_tokens_details", "cached_tokens"),
            count(usage, "output_tokens"),
            count(usage, "output_tokens_details", "reasoning_tokens"),
        )
        if counts:
            await self._emitter.usage(dict(counts))


def _key(event: Any) -> Any:
    found = field(event, "item_id")
    return found if isinstance(found, str) and found else count(event, "output_index")


def _item_key(event: Any) -> Any:
    found = field(event, "item", "id")
    return found if isinstance(found, str) and found else count(event, "output_index")


def _string(value: Any) -> str:
    return scrub(value) if isinstance(value, str) else ""
