"""The request body of the Responses API (siblings 8)."""

from __future__ import annotations

from itertools import groupby
from typing import Any

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
from iii_siblings.providers.openai.chat_body import argument_text
from iii_siblings.providers.openai.prompt_cache import cache_key, marked_sections, retention
from iii_siblings.providers.transcript import Message, blocks, text_of


def responses_body(prepared: Prepared) -> dict[str, Any]:
    """The body of a request."""
    body: dict[str, Any] = {
        "model": prepared.model,
        "input": _system(prepared) + _items(prepared),
        "stream": True,
        "store": False,
    }
    chosen, form = effort(prepared), output_form(prepared)
    tools = [{"type": "function", **fields} for fields in tool_fields(prepared)]
    optional = {
        "max_output_tokens": output_budget(prepared),
        "tools": tools or None,
        "reasoning": None if chosen is None else {"effort": chosen},
        "text": None if form is None else {"format": form},
        "prompt_cache_key": cache_key(prepared.request, prepared.endpoint),
        "prompt_cache_retention": retention(prepared.model, prepared.endpoint, prepared.environ),
    }
    return body | {key: value for key, value in optional.items() if value is not None} | extra_options(prepared)


def _system(prepared: Prepared) -> list[dict[str, Any]]:
    sections = marked_sections(prepared.request, prepared.endpoint)
    if sections is not None:
        return [_message("developer", [_marked(text, marked)]) for text, marked in sections if text]
    prompt = prepared.request.get("system_prompt")
    return [_message("system", [_text(prompt)])] if prompt else []


def _marked(text: str, marked: bool) -> dict[str, Any]:
    return {**_text(text), "prompt_cache_breakpoint": {"mode": "explicit"}} if marked else _text(text)


def _items(prepared: Prepared) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for role, group in groupby(prepared.transcript, key=lambda message: message["role"]):
        members = list(group)
        if role == "function_result":
            out.extend(_call_output(message) for message in members)
            for label, images in hoisted(members):
                out.append(_message("user", [_text(label), *map(_image, images)]))
            continue
        for message in members:
            out.extend(_assistant(message, prepared) if role == "assistant" else _person(message))
    return out


def _person(message: Message) -> list[dict[str, Any]]:
    parts = [_text(text) for text in user_texts(message)] + [_image(url) for url in images_of(blocks(message))]
    return [_message("user", parts)] if parts else []


def _assistant(message: Message, prepared: Prepared) -> list[dict[str, Any]]:
    content = blocks(message)
    text = text_of(content)
    said = [_message("assistant", [{"type": "output_text", "text": text}])] if text else []
    calls = [block for block in content if block.get("type") == "function_call"]
    return said + [
        {
            "type": "function_call",
            "call_id": block["id"],
            "name": prepared.names.encode(block["function_id"]),
            "arguments": argument_text(block),
        }
        for block in calls
    ]


def _call_output(message: Message) -> dict[str, Any]:
    output = text_of(blocks(message))
    return {"type": "function_call_output", "call_id": message["function_call_id"], "output": output}


def _message(role: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": parts}


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _image(url: str) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url}
