"""Marks behind which the API caches a prefix (siblings 7): at most four, all off with one variable.

Two in the system prompt, one behind the functions, one behind what is stable of the messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iii_kit.encoding import encode

VARIABLE = "PROVIDER_ANTHROPIC_CACHE"
LEAST_CHARACTERS = 4096
MAX_SYSTEM_MARKS = 2
_THINKING = ("thinking", "redacted_thinking")


def enabled(environ: Mapping[str, str]) -> bool:
    """False when the operator has switched marks off."""
    return environ.get(VARIABLE, "").strip().lower() not in ("0", "false")


def system_field(request: dict[str, Any], *, marked: bool) -> str | list[dict[str, Any]] | None:
    """The system prompt: in blocks where it has sections or gets a mark, else a string."""
    sections: list[dict[str, Any]] = request.get("system_sections") or []
    if not any(str(section["text"]).strip() for section in sections):
        prompt = str(request.get("system_prompt") or "")
        if not prompt.strip():
            return None
        return [_mark(_text(prompt))] if marked and len(prompt) >= LEAST_CHARACTERS else prompt
    out: list[dict[str, Any]] = []
    length = marks = 0
    for section in sections:
        text = str(section["text"])
        length += len(text)
        if not text.strip():
            continue
        block = _text(text)
        if marked and section.get("cache_boundary") and length >= LEAST_CHARACTERS and marks < MAX_SYSTEM_MARKS:
            marks += 1
            _mark(block)
        out.append(block)
    return out


def mark_tools(tools: list[dict[str, Any]]) -> None:
    """Mark the last function when all of them are long enough."""
    if tools and len(encode(tools).decode()) >= LEAST_CHARACTERS:
        _mark(tools[-1])


def mark_messages(messages: list[dict[str, Any]]) -> None:
    """Mark the last result of the newest message, else the end of the last answer."""
    if not messages:
        return
    results = [block for block in messages[-1]["content"] if block["type"] == "tool_result"]
    if results:
        _mark(results[-1])
        return
    answer = next((message for message in reversed(messages) if message["role"] == "assistant"), None)
    said = [] if answer is None else [block for block in answer["content"] if block["type"] not in _THINKING]
    if said:
        _mark(said[-1])


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _mark(block: dict[str, Any]) -> dict[str, Any]:
    block["cache_control"] = {"type": "ephemeral"}
    return block
