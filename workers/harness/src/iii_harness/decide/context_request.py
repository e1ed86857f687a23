"""What the context manager is asked for one step (harness-loop 12.3, 12.5). Pure: the router's request and the window.

The window goes out entry by entry, without repairs, so that the answer's positions are entries of the transcript.
"""

from __future__ import annotations

import math
from typing import Any, Final

from iii_harness.context_policy import allows_prune
from iii_harness.decide.canonical import compact
from iii_harness.decide.window import Window
from iii_harness.ports import Message
from iii_harness.prompt.sections import sectioned

OVERHEAD: Final = 64
"""Tokens of a request around messages, prompt and tools, beside its own settings."""

SUMMARY: Final = "# Conversation summary"
"""Heading under which a context manager puts the summary into the prompt."""


def overhead_of(request: dict[str, Any]) -> int:
    """Tokens of the request that are neither messages, prompt nor tools: a quarter of their characters, and 64."""
    settings = {name: request[name] for name in ("response_format", "provider_options") if name in request}
    return OVERHEAD + math.ceil(len(compact(settings)) / 4)


def assembly(request: dict[str, Any], window: Window, overhead: int) -> dict[str, Any]:
    """The request of `context::assemble` for a router request whose messages are the window's."""
    options: dict[str, Any] = {"lease_key": request["session_id"], "request_overhead_tokens": overhead}
    if window.summary is not None:
        options["previous_summary"] = window.summary
    if "thinking_level" in request:
        options["thinking_level"] = request["thinking_level"]
    if not allows_prune(request["model"]):
        options["allow_prune"] = False
    return {**_measured(request), "messages": [entry.message for entry in window.entries], "options": options}


def count(request: dict[str, Any], messages: list[Message], prompt: str) -> dict[str, Any]:
    """The request of `context::count-tokens` for what is about to be sent."""
    counted = {**_measured(request), "messages": messages}
    return {**counted, "system_prompt": prompt} if prompt else counted


def prompted(request: dict[str, Any], prompt: str, fallback: str | None) -> tuple[dict[str, Any], str | None]:
    """The router request with another prompt, sectioned as before while its stable part still begins it; and why it
    goes out without sections, if it does (7.3)."""
    sections: list[dict[str, Any]] | None = request.get("system_sections")
    bare = {name: value for name, value in request.items() if name not in _PROMPT}
    if prompt:
        bare["system_prompt"] = prompt
    if sections is None:
        return bare, fallback
    anew = sectioned(prompt, sections[0]["text"], enabled=True)
    if anew.sections is None:
        return bare, anew.fallback
    return {**bare, "system_sections": anew.sections, "cache_intent": anew.cache_intent}, None


def with_summary(prompt: str | None, summary: str) -> str:
    """The prompt that carries the summary of what the window leaves out, in the form a context manager gives it."""
    told = f"{SUMMARY}\n\n{summary}"
    return f"{prompt.rstrip()}\n\n{told}" if prompt else told


_PROMPT: Final = frozenset({"system_prompt", "system_sections", "cache_intent"})


def _measured(request: dict[str, Any]) -> dict[str, Any]:
    """Model, tools and prompt of a request, as the context manager takes them."""
    model = {"id": request["model"]}
    if "provider" in request:
        model["provider"] = request["provider"]
    asked: dict[str, Any] = {"model": model, "tools": request["tools"]}
    return {**asked, "system_prompt": request["system_prompt"]} if "system_prompt" in request else asked
