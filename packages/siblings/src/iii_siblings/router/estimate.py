"""Estimated input tokens where no provider counts them (siblings 4.3): a quarter of the bytes, images flat."""

from __future__ import annotations

from typing import Any, cast

from iii_kit.encoding import encode

IMAGE_TOKENS = 4_096


def estimate(messages: list[Any], system_prompt: str | None, tools: list[Any] | None) -> int:
    """Input tokens of a request; never negative and always the same for the same request."""
    total = sum(_message(message) for message in messages)
    total += len((system_prompt or "").encode("utf-8", "replace")) // 4
    return total + sum(len(encode(tool)) // 4 for tool in tools or [])


def _message(message: Any) -> int:
    if isinstance(message, dict):
        fields = cast("dict[str, Any]", message)
        if fields.get("role") == "custom":
            return 0
        details = fields.get("details")
        denied = isinstance(details, dict) and cast("dict[str, Any]", details).get("status") == "denied"
        if not denied:
            message = {key: value for key, value in fields.items() if key != "details"}
    images: list[None] = []
    return len(encode(_blanked(message, images))) // 4 + IMAGE_TOKENS * len(images)


def _blanked(value: Any, images: list[None]) -> Any:
    if isinstance(value, list):
        return [_blanked(item, images) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    if fields.get("type") == "image" and "data" in fields:
        images.append(None)
        return {**fields, "data": ""}
    return {key: _blanked(item, images) for key, item in fields.items()}
