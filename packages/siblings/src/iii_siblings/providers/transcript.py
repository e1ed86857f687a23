"""A transcript made whole before it is mapped to an API (siblings 6.1): any list of messages goes.

Every call gets exactly one result, right behind the message that made it, in call order; nothing else of role
`function_result` is left; call ids are unique and never empty.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, cast

INTERRUPTED = "Tool call was interrupted before completing. Continue without its output."
DENIED = "[PERMISSION_DENIED]"

Message = dict[str, Any]


@dataclass(slots=True)
class _Open:
    """A call that waits for its result."""

    block: dict[str, Any]
    result: Message | None = None


@dataclass(slots=True)
class _Said:
    """A message of the outgoing transcript, with the calls it makes."""

    message: Message
    calls: list[_Open] = field(default_factory=list[_Open])


def whole(messages: list[Message]) -> list[Message]:
    """The transcript as a provider may be sent it; the given messages are not changed."""
    said: list[_Said] = []
    taken: set[str] = set()
    waiting: dict[str, list[_Open]] = {}
    early: dict[str, Message] = {}
    for message in messages:
        role = message.get("role")
        if role == "function_result":
            _place(message, waiting, early)
        elif role == "assistant":
            said.append(_assistant(message, taken, waiting, early))
        elif role == "user":
            said.append(_Said(message))
    out: list[Message] = []
    for entry in said:
        out.append(entry.message)
        out.extend(_result(call) for call in entry.calls)
    return out


def blocks(message: Message) -> list[dict[str, Any]]:
    """The content blocks of a message, whatever else lies among them left out."""
    content = message.get("content")
    items = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def text_of(content: list[dict[str, Any]]) -> str:
    """The text blocks, joined with line breaks."""
    return "\n".join(str(block.get("text") or "") for block in content if block.get("type") == "text")


def inline_result(block: dict[str, Any]) -> str:
    """A result that lies inside a message of a person, as text."""
    return f"[result of call {block.get('function_call_id')}]\n{text_of(blocks(block))}"


def _place(message: Message, waiting: dict[str, list[_Open]], early: dict[str, Message]) -> None:
    """Give a result to the newest call of its id; calls that share an id in one message get theirs in order."""
    key = str(message.get("function_call_id"))
    calls = waiting.get(key)
    if not calls:
        early[key] = message
        return
    free = next((call for call in calls if call.result is None), calls[-1])
    free.result = message


def _assistant(message: Message, taken: set[str], waiting: dict[str, list[_Open]], early: dict[str, Message]) -> _Said:
    entry = _Said(message)
    content: list[dict[str, Any]] = []
    fresh: dict[str, list[_Open]] = {}
    for block in blocks(message):
        if block.get("type") != "function_call":
            content.append(block)
            continue
        key = str(block.get("id") or "")
        renamed = {**block, "id": _unique(key, taken), "function_id": str(block.get("function_id") or "unknown")}
        content.append(renamed)
        call = _Open(renamed, early.pop(key, None))
        entry.calls.append(call)
        fresh.setdefault(key, []).append(call)
    waiting.update(fresh)
    entry.message = {**message, "content": content}
    return entry


def _unique(key: str, taken: set[str]) -> str:
    base = key or "call"
    unique, number = base, 1
    while unique in taken:
        number += 1
        unique = f"{base}_{number}"
    taken.add(unique)
    return unique


def _result(call: _Open) -> Message:
    result = call.result
    if result is None:
        text = {"type": "text", "text": INTERRUPTED}
        result = {"role": "function_result", "content": [text], "is_error": True, "timestamp": 0}
    else:
        result = {**result, "content": _shown(result)}
    return {**result, "function_call_id": call.block["id"], "function_id": call.block["function_id"]}


def _shown(result: Message) -> list[dict[str, Any]]:
    """The content of a result; a denial says so before its body (siblings 4.7)."""
    content = blocks(result)
    details = result.get("details")
    if not isinstance(details, dict) or cast("dict[str, Any]", details).get("status") != "denied":
        return content
    line = json.dumps(details, ensure_ascii=False, separators=(",", ":"))
    text = f"{DENIED}\n{line}\n\n{text_of(content)}"
    return [{"type": "text", "text": text}, *(block for block in content if block.get("type") != "text")]
