"""The newest page of the active path in blocks, with elided activity runs (siblings 3.7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iii_contracts import session as contract
from iii_contracts.session_calls import TailRequest
from iii_kit.bus import Json
from iii_kit.errors import CodedError
from iii_kit.storage import Reader
from iii_siblings.sessions.items import EntryRow, item_of, newest_first
from iii_siblings.sessions.parts import Parts
from iii_siblings.sessions.path import Span, cut_before, find, is_on, path_to
from iii_siblings.sessions.schema import Head, head_of

WAKE_PREFIXES = (
    "e_fire_", "e_notify_", "e_expire_", "e_stalespawn_", "e_claimfail_", "e_condfail_", "e_trigfired_",
    "e_trigexpired_", "e_trigstale_",
)  # fmt: skip
"""Entry ids of what the harness appends when a binding wakes a session."""

GENERIC_CALL = "agent_trigger"
"""The one function of a provider that stands for all; its arguments name the real one."""

Item = dict[str, Any]


def messages_tail(parts: Parts, reader: Reader, request: TailRequest) -> Json:
    """`session::messages-tail`: whole blocks, newest page, oldest entry first."""
    head = head_of(reader, request.session_id)
    path = path_to(reader, head.active_leaf)
    if request.before_entry_id is not None:
        path = cut_before(path, _on_path(reader, head, path, "before_entry_id", request.before_entry_id))
    if request.until_entry_id is not None:
        _on_path(reader, head, path, "until_entry_id", request.until_entry_id)
    size = parts.limits.page_size(request.limit)
    blocks: list[list[Item]] = []
    reached = request.until_entry_id is None
    more = False
    for block in _blocks(newest_first(reader, path), image_data=request.include_image_data):
        shown = block if request.include_custom else [item for item in block if "message" in item]
        if shown and reached and len(blocks) >= size:
            more = True
            break
        reached = reached or any(item["entry_id"] == request.until_entry_id for item in block)
        if shown:
            blocks.append(shown)
    items = [item for block in reversed(blocks) for item in block]
    answer: dict[str, Any] = {"messages": items, "has_more": more}
    if items:
        answer["oldest_entry_id"] = items[0]["entry_id"]
    return answer


def _on_path(reader: Reader, head: Head, path: list[Span], name: str, entry_id: str) -> int:
    position = find(reader, head.key, entry_id)
    if position is None or not is_on(path, position):
        raise CodedError(contract.INVALID_CURSOR, f"`{name}`: entry {entry_id!r} is not on the path")
    return position


def _blocks(rows: Iterator[EntryRow], *, image_data: bool) -> Iterator[list[Item]]:
    """Blocks from the newest to the oldest, entries of each oldest first, runs elided."""
    run: list[Item] = []
    for row in rows:
        item = item_of(row, image_data=image_data)
        if is_activity(item):
            run.append(item)
            continue
        if run:
            yield elided(run[::-1])
            run = []
        yield [item]
    if run:
        yield elided(run[::-1])


def is_activity(item: Item) -> bool:
    """True for what an activity run consists of."""
    message = item.get("message")
    if is_wake(item):
        return True
    if message is None:
        return False
    return message["role"] == "function_result" or (message["role"] == "assistant" and bool(_calls(message)))


def is_wake(item: Item) -> bool:
    """True for an entry that a binding's firing appended."""
    origin: dict[str, Any] = item.get("origin") or {}
    return (
        origin.get("notification") is True
        or origin.get("trigger_fired") is True
        or item["entry_id"].startswith(WAKE_PREFIXES)
        or ("custom" in item and item["custom"]["custom_type"] == "trigger_fired")
    )


def elided(run: list[Item]) -> list[Item]:
    """A run with everything shortened but its last calls, their results and wake entries."""
    whole: set[str] = set()
    for item in reversed(run):
        calls = _calls(item.get("message") or {})
        if calls:
            whole = {call["id"] for call in calls}
            kept = item
            break
    else:
        kept = None
    return [item if item is kept or is_wake(item) or _answers(item, whole) else _shortened(item) for item in run]


def _answers(item: Item, call_ids: set[str]) -> bool:
    message = item["message"]
    return message["role"] == "function_result" and message["function_call_id"] in call_ids


def _shortened(item: Item) -> Item:
    message = item["message"]
    if message["role"] == "function_result":
        return {**item, "message": {**message, "content": [], "details": None}, "elided": True}
    content = [_shortened_block(block) for block in message["content"] if "thinking" not in block["type"]]
    return {**item, "message": {**message, "content": content}, "elided": True}


def _shortened_block(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] != "function_call":
        return block
    arguments = block.get("arguments")
    if block["function_id"] != GENERIC_CALL or not isinstance(arguments, dict):
        return {**block, "arguments": {}}
    kept: dict[str, Any] = {name: arguments[name] for name in ("function", "description") if name in arguments}
    return {**block, "arguments": kept}


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    if message.get("role") != "assistant":
        return []
    return [block for block in message["content"] if block["type"] == "function_call"]
