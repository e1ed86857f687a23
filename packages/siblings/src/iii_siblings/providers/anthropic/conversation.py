"""The transcript as messages of the API (siblings 6.1, 7): whole, alternating where it matters, nothing blank.

The API refuses blank text, foreign signatures, ids with odd characters and kinds of images it does not know; one such
block would make every later request of a session fail, so none goes out.
"""

from __future__ import annotations

import re
from typing import Any, cast

from iii_siblings.providers.function_names import FunctionNames
from iii_siblings.providers.transcript import Message, blocks, inline_result, text_of, whole

PROVIDER = "anthropic"
IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_THINKING = ("thinking", "redacted_thinking")
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")

Block = dict[str, Any]


class Conversation:
    """Maps one transcript; `warnings` collects what was left out."""

    def __init__(self, names: FunctionNames, warnings: list[str]) -> None:
        self._names = names
        self._warnings = warnings
        self._ids: dict[str, str] = {}
        self._taken: set[str] = set()
        self._out: list[dict[str, Any]] = []

    def messages(self, transcript: list[Message]) -> list[dict[str, Any]]:
        """The messages of a request."""
        for message in whole(transcript):
            role = message["role"]
            if role == "assistant":
                self._add("assistant", self._said(message))
            elif role == "function_result":
                self._join([self._result(message)])
            else:
                self._join(self._asked(message))
        if self._out and self._out[-1]["role"] == "assistant":
            self._warnings.append("trailing assistant message dropped: an answer cannot be begun for the model")
            while self._out and self._out[-1]["role"] == "assistant":
                self._out.pop()
        return self._out

    def _add(self, role: str, content: list[Block]) -> None:
        if content:
            self._out.append({"role": role, "content": content})

    def _join(self, content: list[Block]) -> None:
        """Put results, and what a person says right after them, into one message; else begin a new one."""
        last = self._out[-1] if self._out else None
        if last is not None and last["role"] == "user" and last["content"][-1]["type"] == "tool_result":
            last["content"].extend(content)
        else:
            self._add("user", content)

    def _said(self, message: Message) -> list[Block]:
        own = message.get("provider") == PROVIDER
        mapped = [self._said_block(block, own) for block in blocks(message)]
        content = [block for block in mapped if block is not None]
        while content and content[-1]["type"] in _THINKING:
            content.pop()
        return content

    def _said_block(self, block: Block, own: bool) -> Block | None:
        kind = block.get("type")
        if kind == "text":
            return _text(block.get("text"))
        if kind == "function_call":
            return self._call(block)
        if kind == "thinking" and own and block.get("signature"):
            return {"type": "thinking", "thinking": str(block.get("text") or ""), "signature": block["signature"]}
        if kind == "redacted_thinking" and own and block.get("data"):
            return {"type": "redacted_thinking", "data": block["data"]}
        return None

    def _call(self, block: Block) -> Block:
        arguments = block.get("arguments")
        given = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
        name = self._names.encode(block["function_id"])
        return {"type": "tool_use", "id": self._legal(block["id"]), "name": name, "input": given}

    def _legal(self, call_id: str) -> str:
        """The id of a call in letters that the API takes; the same for its result."""
        known = self._ids.get(call_id)
        if known is not None:
            return known
        base = legal = _FORBIDDEN.sub("_", call_id)
        number = 1
        while legal in self._taken:
            number += 1
            legal = f"{base}_{number}"
        self._taken.add(legal)
        self._ids[call_id] = legal
        return legal

    def _result(self, message: Message) -> Block:
        parts = self._parts(blocks(message))
        images = any(part["type"] == "image" for part in parts)
        content = parts if images else text_of(parts)
        if not content and message.get("is_error"):
            content = "The call failed and said nothing."
        result: Block = {"type": "tool_result", "tool_use_id": self._legal(message["function_call_id"])}
        result["content"] = content
        return {**result, "is_error": True} if message.get("is_error") else result

    def _asked(self, message: Message) -> list[Block]:
        return self._parts(blocks(message))

    def _parts(self, content: list[Block]) -> list[Block]:
        """Texts and images, in their order."""
        mapped = [self._part(block) for block in content]
        return [part for part in mapped if part is not None]

    def _part(self, block: Block) -> Block | None:
        kind = block.get("type")
        if kind == "text":
            return _text(block.get("text"))
        if kind == "function_result":
            return _text(inline_result(block))
        return self._image(block) if kind == "image" and block.get("data") else None

    def _image(self, block: Block) -> Block:
        mime = str(block.get("mime") or "image/png").lower()
        mime = "image/jpeg" if mime == "image/jpg" else mime
        if mime not in IMAGES:
            self._warnings.append(f"an image of type {mime} was left out: the API does not know it")
            return {"type": "text", "text": f"[image of type {mime}, which cannot be shown]"}
        return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": block["data"]}}


def _text(text: Any) -> Block | None:
    return {"type": "text", "text": text} if isinstance(text, str) and text.strip() else None
