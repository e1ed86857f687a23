"""The request body of Chat Completions (siblings 8). Empty content is text, never null."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from iii_kit.encoding import encode
from iii_siblings.providers.openai.body import (
    Prepared,
    effort,
    extra_options,
    hoisted,
    images_of,
    output_budget,
    output_form,
    tool_fields,
    user_texts,
)
from iii_siblings.providers.openai.prompt_cache import cache_key, marked_sections
from iii_siblings.providers.transcript import Message, blocks, text_of


def chat_body(prepared: Prepared) -> dict[str, Any]:
    """The body of a request."""
    body: dict[str, Any] = {
        "model": prepared.model,
        "messages": _system(prepared) + _messages(prepared),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    form = output_form(prepared)
    if form is not None and form["type"] == "json_schema":
        form = {"type": "json_schema", "json_schema": {key: value for key, value in form.items() if key != "type"}}
    tools = [{"type": "function", "function": fields} for fields in tool_fields(prepared)]
    optional = {
        "max_completion_tokens": output_budget(prepared),
        "tools": tools or None,
        "reasoning_effort": effort(prepared),
        "response_format": form,
        "prompt_cache_key": cache_key(prepared.request, prepared.endpoint),
    }
    return body | {key: value for key, value in optional.items() if value is not None} | extra_options(prepared)


def _system(prepared: Prepared) -> list[dict[str, Any]]:
    sections = marked_sections(prepared.request, prepared.endpoint)
    if sections is not None:
        return [{"role": "developer", "content": [_marked(text, marked)]} for text, marked in sections if text]
    prompt = prepared.request.get("system_prompt")
    return [{"role": "system", "content": prompt}] if prompt else []


def _marked(text: str, marked: bool) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "text", "text": text}
    return {**part, "prompt_cache_breakpoint": {"mode": "explicit"}} if marked else part


def _messages(prepared: Prepared) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for role, group in groupby(prepared.transcript, key=lambda message: message["role"]):
        members = list(group)
        if role == "function_result":
            out.extend(_tool_result(message) for message in members)
            out.extend(_user([label], images) for label, images in hoisted(members))
            continue
        for message in members:
            mapped = _assistant(message, prepared) if role == "assistant" else _person(message)
            if mapped is not None:
                out.append(mapped)
    return out


def _person(message: Message) -> dict[str, Any] | None:
    texts, images = user_texts(message), images_of(blocks(message))
    return _user(texts, images) if texts or images else None


def _user(texts: list[str], images: list[str]) -> dict[str, Any]:
    if not images:
        return {"role": "user", "content": "\n".join(texts)}
    parts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    return {"role": "user", "content": parts + [{"type": "image_url", "image_url": {"url": url}} for url in images]}


def _assistant(message: Message, prepared: Prepared) -> dict[str, Any] | None:
    content = blocks(message)
    calls = [_call(block, prepared) for block in content if block.get("type") == "function_call"]
    text = text_of(content)
    if not calls and not text:
        return None
    return {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})


def _call(block: dict[str, Any], prepared: Prepared) -> dict[str, Any]:
    function = {"name": prepared.names.encode(block["function_id"]), "arguments": argument_text(block)}
    return {"id": block["id"], "type": "function", "function": function}


def _tool_result(message: Message) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": message["function_call_id"], "content": text_of(blocks(message))}


def argument_text(block: dict[str, Any]) -> str:
    """The arguments of a call as JSON text; a call without any has an empty object."""
    arguments = block.get("arguments")
    return "{}" if arguments is None else encode(arguments).decode()
