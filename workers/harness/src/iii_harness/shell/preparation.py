"""What a step asks the model (harness-loop 6.3 steps 7-13): the path, the window, the surface, the request.

Without a context manager the window and the prompt go out as they are (12.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from iii_harness.decide import entry_ids
from iii_harness.decide.core import notice_message
from iii_harness.decide.decision import Ready
from iii_harness.decide.window import NOTICE
from iii_harness.ports import Gate, Item, Notice, Surface
from iii_harness.record import TurnRecord
from iii_harness.shell.parts import Parts
from iii_harness.shell.paths import Paths


class Prepared(msgspec.Struct, frozen=True):
    """A request that is ready to go out, and what must be written before it does."""

    ready: Ready
    request: dict[str, Any]
    gate: Gate
    leaf: str | None


class Preparation:
    """Maker of requests."""

    def __init__(self, parts: Parts, paths: Paths) -> None:
        self._parts = parts
        self._paths = paths

    async def of_step(self, record: TurnRecord) -> Prepared:
        """The request of `record.step`."""
        path = await self._paths.load(record.session_id)
        surface = await self._parts.surfaces.of_step(record, path)
        own_reply = entry_ids.assistant(record.turn_id, record.step)
        begun = any(item.entry_id == own_reply for item in path)
        notices = () if begun else _untold(record, surface, path)
        messages, move = path.window.of(path, own_reply=own_reply, watermark=record.watermark_entry_id)
        now_ms = self._parts.world.clock.now_ms()
        messages += [notice_message(notice.text, now_ms) for _, notice in notices]
        ready = Ready(
            sendable=bool(messages),
            runtime_context=surface.runtime_context,
            notices=notices,
            move=move,
            acknowledged=surface.acknowledged,
            at_ms=now_ms,
        )
        leaf = path[-1].entry_id if path else None
        if begun:
            # The reply in this path is about to be rewritten: the next step must not take it from memory.
            self._paths.drop(record.session_id)
        return Prepared(ready, _request(record, surface, messages), surface.gate, leaf)


def _untold(record: TurnRecord, surface: Surface, path: Sequence[Item]) -> tuple[tuple[str, Notice], ...]:
    """The step's notices that are not persisted yet, with their entry ids (harness-agents 3.10)."""
    if not surface.notices:
        return ()
    prefix = entry_ids.notice(record.turn_id, record.step, 0)[:-1]
    told = [item.data for item in path if item.custom_type == NOTICE and item.entry_id.startswith(prefix)]
    known = {(data.get("kind"), data.get("text")) for data in told}
    fresh = [notice for notice in surface.notices if (notice.kind, notice.text) not in known]
    return tuple(
        (entry_ids.notice(record.turn_id, record.step, index), notice) for index, notice in enumerate(fresh, len(told))
    )


def _request(record: TurnRecord, surface: Surface, messages: list[Any]) -> dict[str, Any]:
    options = record.options
    request: dict[str, Any] = {
        "request_id": record.request_id,
        "session_id": record.session_id,
        "model": options.model,
        "messages": messages,
        "tools": surface.tools,
    }
    optional = {
        "provider": options.provider,
        "system_prompt": surface.system_prompt,
        "max_output_tokens": options.max_output_tokens,
        "thinking_level": options.thinking_level,
        "provider_options": options.provider_options,
        "system_sections": surface.system_sections,
        "cache_intent": surface.cache_intent,
    }
    request.update((name, value) for name, value in optional.items() if value is not None)
    return request
