"""What a step asks the model (harness-loop 6.3 steps 7-13): the path, the window, the surface, the request.

Where there is a context manager it fits them into the model's window; without one they go out as they are (12.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from iii_harness.decide import entry_ids
from iii_harness.decide.context_request import prompted, with_summary
from iii_harness.decide.context_snapshot import Context
from iii_harness.decide.core import notice_message
from iii_harness.decide.decision import Ready, Unfit
from iii_harness.decide.window import NOTICE
from iii_harness.ports import Gate, Item, Message, Notice, Surface
from iii_harness.record import TurnRecord
from iii_harness.shell.assembling import Absent, Assembling, Draft, Overflowed, Stopped
from iii_harness.shell.offers import offer_of
from iii_harness.shell.parts import Parts
from iii_harness.shell.paths import Path, Paths


class Prepared(msgspec.Struct, frozen=True):
    """A request that is ready to go out, and what must be written before it does; or why it cannot be made."""

    ready: Ready | Unfit
    request: dict[str, Any]
    gate: Gate
    leaf: str | None
    context: Context | None = None


class Preparation:
    """Maker of requests."""

    def __init__(self, parts: Parts, paths: Paths, assembling: Assembling) -> None:
        self._parts = parts
        self._paths = paths
        self._assembling = assembling

    async def of_step(self, record: TurnRecord) -> Prepared:
        """The request of `record.step`."""
        asks = self._assembling.present
        path = await self._paths.load(record.session_id, trusting=not asks)
        offer = await offer_of(self._parts.surfaces, record, path)
        surface, request = offer.surface, {**offer.request, "request_id": record.request_id}
        own_reply = entry_ids.assistant(record.turn_id, record.step)
        begun = not path.trusted and any(item.entry_id == own_reply for item in path.fresh)
        notices = () if begun else _untold(record, surface, path)
        now_ms = self._parts.world.clock.now_ms()
        ready = Ready(
            sendable=True,
            runtime_context=surface.runtime_context,
            notices=notices,
            acknowledged=surface.acknowledged,
            at_ms=now_ms,
        )
        told = [notice_message(notice.text, now_ms) for _, notice in notices]
        prepared = await self._assembled(record, path, surface, request, ready, told) if asks else None
        if prepared is None:
            prepared = _unassembled(record, path, surface, request, ready, told)
        if begun:
            # The reply in this path is about to be rewritten: the next step must not take it from memory.
            self._paths.drop(record.session_id)
        return prepared

    async def _assembled(
        self,
        record: TurnRecord,
        path: Path,
        surface: Surface,
        request: dict[str, Any],
        ready: Ready,
        told: list[Message],
    ) -> Prepared | None:
        """The request with the context that the context manager makes; None when there is none after all."""
        own_reply = entry_ids.assistant(record.turn_id, record.step)
        seen = path.window.view(path, own_reply=own_reply, watermark=record.watermark_entry_id)
        if not seen.entries:
            return None
        leaf = _leaf(path)
        try:
            made = await self._assembling.of(Draft(record, request, seen, told, surface.sections_fallback))
        except Absent:
            return None
        except Stopped:
            # The stop itself is seen with the facts of this event.
            return Prepared(replace(ready, sendable=False), request, surface.gate, leaf)
        if isinstance(made, Overflowed):
            return Prepared(Unfit(made.failure, made.compaction), request, surface.gate, leaf)
        ready = replace(ready, move=seen.move, compaction=made.compaction)
        return Prepared(ready, made.request, surface.gate.showing(made.request["messages"]), leaf, made.context)


def _unassembled(
    record: TurnRecord, path: Path, surface: Surface, request: dict[str, Any], ready: Ready, told: list[Message]
) -> Prepared:
    """The request with the window as it is (12.6), and the summary of what an earlier compaction left out of it."""
    own_reply = entry_ids.assistant(record.turn_id, record.step)
    messages, move = path.window.of(path, own_reply=own_reply, watermark=record.watermark_entry_id)
    messages += told
    if path.window.summary is not None:
        prompt = with_summary(surface.system_prompt, path.window.summary)
        request = prompted(request, prompt, surface.sections_fallback)[0]
    if move is not None or not messages:
        ready = replace(ready, sendable=bool(messages), move=move)
    return Prepared(ready, request | {"messages": messages}, surface.gate, _leaf(path))


def _leaf(path: Sequence[Item]) -> str | None:
    return path[-1].entry_id if path else None


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
