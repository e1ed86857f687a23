"""The messages a model is sent (harness-loop 12.2, 12.4, 12.8): derived from the log alone, a pure function of it.

So every later step replays the same prefix: entries are only added behind, and the one kind of move (a user message
that arrived between a reply and its results) is itself an entry of the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgspec

from iii_harness.decide import synthetic
from iii_harness.decide.plan import calls_of
from iii_harness.ports import Item, Message

NOTICE = "model_notice"
ORDER = "message_order"
COMPACTION = "compaction"
RUNTIME_CONTEXT = "runtime_context"


class Entry(NamedTuple):
    """One message of the window and the transcript entry it comes from."""

    entry_id: str
    message: Message


class Move(msgspec.Struct, frozen=True):
    """A `message_order` entry that is new in this step: the ids go right behind `after`."""

    after: str
    moved: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The entry's data."""
        return {"after": self.after, "moved": list(self.moved)}


class Window(msgspec.Struct, frozen=True):
    """What the log gives the model, in order."""

    entries: list[Entry]
    summary: str | None = None
    move: Move | None = None
    head_tokens: int | None = None
    """Tokens that the summary stands for, as far as its record tells."""


def window(path: Sequence[Item], *, own_reply: str, watermark: str | None) -> Window:
    """The window of a step whose reply is `own_reply` and whose previous generation saw the path up to `watermark`."""
    logged = _logged(path, own_reply)
    for item in path:
        if item.custom_type == ORDER:
            logged = _moved(logged, item.data)
    anchor = next((item for item in reversed(path) if item.custom_type == COMPACTION), None)
    entries, summary = _opened(path, logged, anchor)
    move = _late_arrivals(path, entries, watermark)
    head = _field(anchor.data, "summarized_head_tokens") if anchor is not None and summary is not None else None
    return Window(
        _moved(entries, move.to_json()) if move else entries, summary, move, head if isinstance(head, int) else None
    )


def messages_of(entries: Sequence[Entry]) -> list[Message]:
    """The messages to send, with every call answered."""
    return with_results([entry.message for entry in entries])


def with_results(sent: Sequence[Message]) -> list[Message]:
    """The messages with every call answered: orphans get a synthetic result in this copy alone (12.8).

    A result answers the reply before it, never an earlier one: providers use the same call id again in another turn.
    """
    messages: list[Message] = []
    answered: set[Any] = set()
    last = True
    for message in reversed(sent):
        role = message.get("role")
        if role == "function_result":
            answered.add(message.get("function_call_id"))
        elif role == "assistant":
            calls = calls_of(message.get("content"))
            missing = [_orphan(call, message, last=last) for call in calls if call.get("id") not in answered]
            messages.extend(reversed(missing))
            answered, last = set[Any](), False
        messages.append(message)
    messages.reverse()
    return messages


def message_of(item: Item) -> Message | None:
    """What an entry gives the model: its message without files, a replayed notice, or nothing."""
    message = item.message
    if message is None:
        sent = _field(item.data, "message") if item.custom_type == NOTICE else None
        return cast("Message", sent) if isinstance(sent, dict) else None
    return None if message.get("role") == "custom" else _without_files(message)


def named(item: Item) -> list[str]:
    """The ids of other entries that a move or a compaction names."""
    moved: Any = _field(item.data, "moved")
    ids = [*cast("list[Any]", moved)] if isinstance(moved, list) else []
    ids += [_field(item.data, "after"), _field(item.data, "tail_start_entry_id")]
    return [entry_id for entry_id in ids if isinstance(entry_id, str)]


def _logged(path: Sequence[Item], own_reply: str) -> list[Entry]:
    """Messages and replayed notices in log order, without what no model is sent."""
    entries: list[Entry] = []
    for index, item in enumerate(path):
        message = message_of(item)
        if message is None:
            continue
        if item.entry_id == own_reply and not _has_result(message, path[index + 1 :]):
            continue
        entries.append(Entry(item.entry_id, message))
    return entries


def _has_result(reply: Message, behind: Sequence[Item]) -> bool:
    calls = {call.get("id") for call in calls_of(reply.get("content"))}
    return any(item.message is not None and item.message.get("function_call_id") in calls for item in behind)


def _without_files(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    blocks = cast("list[Any]", content)
    for block in blocks:
        if _field(block, "type") == "file":
            return {**message, "content": [block for block in blocks if _field(block, "type") != "file"]}
    return message


def _field(value: Any, key: str) -> Any:
    return cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None


def _moved(entries: list[Entry], data: Any) -> list[Entry]:
    """The entries after one stored move; unknown ids are ignored."""
    ids, after = _field(data, "moved"), _field(data, "after")
    if not isinstance(ids, list) or not _all_text(cast("list[Any]", ids)):
        return entries
    wanted = set(cast("list[str]", ids))
    moving = [entry for entry in entries if entry.entry_id in wanted and entry.entry_id != after]
    if not moving or not any(entry.entry_id == after for entry in entries):
        return entries
    by_id = {entry.entry_id: entry for entry in moving}
    in_order = [by_id[entry_id] for entry_id in dict.fromkeys(cast("list[str]", ids)) if entry_id in by_id]
    result: list[Entry] = []
    for entry in entries:
        if entry.entry_id in by_id:
            continue
        result.append(entry)
        if entry.entry_id == after:
            result.extend(in_order)
    return result


def _all_text(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _opened(path: Sequence[Item], logged: list[Entry], anchor: Item | None) -> tuple[list[Entry], str | None]:
    """The window from the compaction anchor on, and the summary of what lies before it (12.4)."""
    summary = _field(anchor.data, "summary") if anchor is not None else None
    if anchor is None or not isinstance(summary, str):
        return logged, None
    data = cast("dict[str, Any]", anchor.data)
    if "tail_start_entry_id" in data and data["tail_start_entry_id"] is None:
        position = {item.entry_id: index for index, item in enumerate(path)}
        opened = position[anchor.entry_id]
        return [entry for entry in logged if position[entry.entry_id] > opened], summary
    boundary: Any = data.get("tail_start_entry_id")
    start = next((index for index, entry in enumerate(logged) if entry.entry_id == boundary), None)
    return (logged, summary) if start is None else (logged[start:], summary)


def _late_arrivals(path: Sequence[Item], entries: list[Entry], watermark: str | None) -> Move | None:
    """User messages logged after `watermark` that stand before the last reply or its results (12.2 step 4)."""
    if watermark is None:
        return None
    reply = next((i for i in range(len(entries) - 1, -1, -1) if entries[i].message.get("role") == "assistant"), None)
    if reply is None:
        return None
    calls = {call.get("id") for call in calls_of(entries[reply].message.get("content"))}
    end, answered = reply, set[Any]()
    for index in range(reply + 1, len(entries)):
        message = entries[index].message
        if message.get("role") == "function_result" and message.get("function_call_id") in calls:
            answered.add(message.get("function_call_id"))
            end = index
    if answered != calls:
        return None
    behind = _ids_behind(path, watermark)
    if not behind:
        return None
    late = tuple(entry.entry_id for index, entry in enumerate(entries[:end]) if index > 0 and entry.entry_id in behind)
    return Move(entries[end].entry_id, late) if late else None


def _ids_behind(path: Sequence[Item], watermark: str) -> set[str] | None:
    """Ids of the user messages behind the watermark, or None when it left the path."""
    behind: set[str] = set()
    for item in reversed(path):
        if item.entry_id == watermark:
            return behind
        if item.message is not None and item.message.get("role") == "user":
            behind.add(item.entry_id)
    return None


def _orphan(call: dict[str, Any], reply: Message, *, last: bool) -> Message:
    result = synthetic.orphan(last=last)
    return {
        "role": "function_result",
        "function_call_id": call.get("id"),
        "function_id": call.get("function_id"),
        "content": result.content,
        "details": result.details,
        "is_error": result.is_error,
        "timestamp": reply.get("timestamp", 0),
    }
