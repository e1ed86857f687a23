"""What both request bodies of the API share: tools, effort, output form, options (siblings 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iii_siblings.providers.function_names import FunctionNames
from iii_siblings.providers.functions_offered import offered_functions
from iii_siblings.providers.openai.endpoint import Endpoint
from iii_siblings.providers.openai.reasoning import effort_for, efforts_of
from iii_siblings.providers.transcript import Message, blocks, inline_result, whole

_OWN_OPTIONS = frozenset({"prompt_cache_key", "reasoning_effort"})
_PROTECTED = frozenset({"model", "messages", "input", "stream", "stream_options", "store", "tools"})


@dataclass(slots=True)
class Prepared:
    """A request on its way to a body; `warnings` collects what was dropped or weakened."""

    request: dict[str, Any]
    endpoint: Endpoint
    names: FunctionNames
    environ: Mapping[str, str]
    warnings: list[str] = field(default_factory=list[str])

    @property
    def model(self) -> str:
        """The model asked for."""
        return self.request["model"]

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The functions offered."""
        return self.request.get("tools") or []

    @property
    def transcript(self) -> list[Message]:
        """The transcript, made whole."""
        return whole(self.request["messages"])

    @property
    def options(self) -> dict[str, Any]:
        """Options of this provider."""
        return self.request.get("provider_options") or {}


def prepared(request: dict[str, Any], endpoint: Endpoint, environ: Mapping[str, str]) -> Prepared:
    """A request with the names of its functions."""
    tools: list[dict[str, Any]] = request.get("tools") or []
    return Prepared(request, endpoint, FunctionNames([str(tool["name"]) for tool in tools]), environ)


def tool_fields(prepared: Prepared) -> list[dict[str, Any]]:
    """Every offered function as name, description and an object schema."""
    return [
        {"name": function.name, "description": function.description, "parameters": function.schema}
        for function in offered_functions(prepared.tools, prepared.names)
    ]


def output_budget(prepared: Prepared) -> int | None:
    """The output ceiling to send.

    A compatible server may count it against its window and refuse the request, so one that is no less than the
    model's own ceiling, and therefore says nothing, is left out there.
    """
    asked = prepared.request.get("max_output_tokens")
    entry: dict[str, Any] = prepared.request.get("model_meta") or {}
    ceiling = entry.get("max_output_tokens")
    if not prepared.endpoint.official and asked is not None and ceiling is not None and asked >= ceiling:
        return None
    return asked


def effort(prepared: Prepared) -> str | None:
    """The reasoning effort to send."""
    given = prepared.options.get("reasoning_effort")
    if isinstance(given, str):
        return given
    level = prepared.request.get("thinking_level")
    if "luna" in prepared.model and prepared.tools and prepared.endpoint.mode == "chat":
        if level is not None:
            prepared.warnings.append(f"thinking_level dropped: {prepared.model} does not reason beside tools")
        return "none"
    if level is None:
        return None
    chosen = effort_for(level, efforts_of(prepared.model, prepared.request.get("model_meta")))
    if chosen is None:
        prepared.warnings.append(f"thinking_level dropped: {prepared.model} has no reasoning efforts")
    elif chosen != level:
        prepared.warnings.append(f"thinking_level {level} sent as {chosen}: {prepared.model} knows no nearer effort")
    return chosen


def output_form(prepared: Prepared) -> dict[str, Any] | None:
    """The fields of a JSON output form: a schema, or any object."""
    form: dict[str, Any] | None = prepared.request.get("response_format")
    if form is None:
        return None
    if form.get("schema") is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "name": "response", "strict": True, "schema": form["schema"]}


def extra_options(prepared: Prepared) -> dict[str, Any]:
    """Options that go into the body as they are, such as `temperature`."""
    return {key: value for key, value in prepared.options.items() if key not in _OWN_OPTIONS | _PROTECTED}


def images_of(content: list[dict[str, Any]]) -> list[str]:
    """The images among blocks, as data URIs; blanked ones are left out."""
    found = [block for block in content if block.get("type") == "image" and block.get("data")]
    return [f"data:{block.get('mime') or 'image/png'};base64,{block['data']}" for block in found]


def user_texts(message: Message) -> list[str]:
    """The texts of a message of a person; an inline result counts as one."""
    texts: list[str] = []
    for block in blocks(message):
        if block.get("type") == "text":
            texts.append(str(block.get("text") or ""))
        elif block.get("type") == "function_result":
            texts.append(inline_result(block))
    return [text for text in texts if text]


def hoisted(results: list[Message]) -> list[tuple[str, list[str]]]:
    """The images of results, each with the label of the call it came from."""
    found = [(str(result["function_call_id"]), images_of(blocks(result))) for result in results]
    return [(f"[image result of tool call {call}]", images) for call, images in found if images]
