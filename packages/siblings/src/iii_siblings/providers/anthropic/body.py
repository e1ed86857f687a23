"""The request body of the Messages API (siblings 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iii_siblings.providers.anthropic import cache_marks
from iii_siblings.providers.anthropic.conversation import Conversation
from iii_siblings.providers.anthropic.thinking import thinking_fields
from iii_siblings.providers.function_names import FunctionNames
from iii_siblings.providers.functions_offered import offered_functions

DEFAULT_OUTPUT_TOKENS = 8192
"""The API wants a ceiling; this one where neither the request nor the catalogue names any."""
_PROTECTED = frozenset({"model", "messages", "stream", "system", "tools", "max_tokens"})


def messages_body(
    request: dict[str, Any], names: FunctionNames, environ: Mapping[str, str], warnings: list[str]
) -> dict[str, Any]:
    """The body of a request; `warnings` collects what was dropped or weakened."""
    marked = cache_marks.enabled(environ)
    messages = Conversation(names, warnings).messages(request["messages"])
    tools = _tools(request, names)
    if marked:
        cache_marks.mark_tools(tools)
        cache_marks.mark_messages(messages)
    if request.get("response_format") is not None:
        warnings.append("response_format ignored: provider anthropic has no output form")
    body: dict[str, Any] = {
        "model": request["model"],
        "max_tokens": _ceiling(request),
        "messages": messages,
        "stream": True,
    }
    optional = {"system": cache_marks.system_field(request, marked=marked), "tools": tools or None}
    body |= {key: value for key, value in optional.items() if value is not None}
    options: dict[str, Any] = request.get("provider_options") or {}
    given = {key: value for key, value in options.items() if key not in _PROTECTED}
    return body | thinking_fields(request, warnings) | given


def _tools(request: dict[str, Any], names: FunctionNames) -> list[dict[str, Any]]:
    return [
        {"name": function.name, "description": function.description, "input_schema": function.schema}
        for function in offered_functions(request.get("tools") or [], names)
    ]


def _ceiling(request: dict[str, Any]) -> int:
    entry: dict[str, Any] = request.get("model_meta") or {}
    return request.get("max_output_tokens") or entry.get("max_output_tokens") or DEFAULT_OUTPUT_TOKENS
