"""The message of a send or an edit, normalised and checked (harness-loop 3.1).

What would spoil the session for good is refused here: a role the loop does not deliver, blocks that do not parse, and
a message without any content.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from iii_contracts.messages import CustomMessage, UserMessage
from iii_contracts.problems import describe
from iii_harness.errors import invalid_request, invalid_role

_SHAPES: dict[str, TypeAdapter[Any]] = {"user": TypeAdapter(UserMessage), "custom": TypeAdapter(CustomMessage)}


def normalise(message: str | dict[str, Any], now_ms: int) -> dict[str, Any]:
    """The message as it is stored: text becomes a user message of one block, a missing timestamp is now.

    Raises `harness/invalid_message_role` or `harness/invalid_request`, naming the field.
    """
    if isinstance(message, str):
        if not message.strip():
            raise invalid_request("`message`: is empty; say something, or send a message object")
        return {"role": "user", "content": [{"type": "text", "text": message}], "timestamp": now_ms}
    role = message.get("role")
    shape = _SHAPES.get(role) if isinstance(role, str) else None
    if shape is None:
        raise invalid_role(role)
    try:
        parsed = shape.validate_python({"timestamp": now_ms, **message})
    except ValidationError as error:
        raise invalid_request(f"in `message`: {describe(error)}") from error
    normal = cast("dict[str, Any]", parsed.model_dump(mode="json", by_alias=True, exclude_unset=True))
    if role == "user" and not _says_something(normal["content"]):
        raise invalid_request("`message.content`: has no content; a user message needs a non-empty block")
    return normal


def _says_something(blocks: list[dict[str, Any]]) -> bool:
    return any(block.get("type") != "text" or block["text"].strip() for block in blocks)
