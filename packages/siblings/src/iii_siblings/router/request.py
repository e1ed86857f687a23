"""Requests for a generation: what is refused, and what a provider is sent (siblings 5.2).

The transcript may be long and is passed on as it came; it is looked at once, without building models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import msgspec

from iii_contracts.generation import HandCheckedSpec
from iii_contracts.problems import shown
from iii_contracts.router import INVALID
from iii_kit.encoding import decode
from iii_kit.errors import CodedError

SEPARATOR = "\n\n"
"""What joins the sections of a system prompt."""


class _Block(msgspec.Struct, gc=False):
    type: str


class _Message(msgspec.Struct, gc=False, tag_field="role"):
    content: list[_Block]


class _User(_Message, gc=False, tag="user"):
    pass


class _Assistant(_Message, gc=False, tag="assistant"):
    pass


class _Custom(_Message, gc=False, tag="custom"):
    pass


class _Result(_Message, gc=False, tag="function_result"):
    function_call_id: str


_Transcript = list[_User | _Assistant | _Custom | _Result]
"""What every message needs. The shape alone: what is wrong with another one is said by `_message_problem`."""


class _Shape(msgspec.Struct, gc=False):
    messages: _Transcript


_decode_transcript = msgspec.json.Decoder(_Transcript).decode


_ROLES = frozenset({"user", "assistant", "function_result", "custom"})
_PASSED_ON = (
    "model",
    "messages",
    "session_id",
    "system_prompt",
    "cache_intent",
    "tools",
    "response_format",
    "thinking_level",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked request."""

    data: dict[str, Any]

    @property
    def model(self) -> str:
        """The model asked for."""
        return self.data["model"]

    @property
    def provider(self) -> str | None:
        """The provider asked for, if any."""
        return self.data.get("provider") or None

    @property
    def max_output_tokens(self) -> int | None:
        """The output ceiling asked for, if any."""
        return self.data.get("max_output_tokens")

    def for_provider(self, provider: str, model: dict[str, Any] | None, request_id: str, budget: int) -> dict[str, Any]:
        """The request of the provider's stream function, without the channel."""
        data = self.data
        payload = {key: data[key] for key in _PASSED_ON if data.get(key) is not None}
        sections = data.get("system_sections")
        if sections and SEPARATOR.join(section["text"] for section in sections) == data.get("system_prompt"):
            payload["system_sections"] = sections
        every: dict[str, Any] = data.get("provider_options") or {}
        options = every.get(provider)
        if options is not None:
            payload["provider_options"] = options
        if model is not None:
            payload["model_meta"] = model
        payload["max_output_tokens"] = budget
        payload["resolution_key"] = request_id
        return payload


def read_request(spec: HandCheckedSpec, data: Any) -> Asked:
    """The checked request. Raises `router/invalid_request` naming what is wrong."""
    if not isinstance(data, dict):
        raise CodedError(INVALID, f"the request must be an object, got {shown(data)}")
    fields = cast("dict[str, Any]", data)
    model = fields.get("model")
    if model is None or (isinstance(model, str) and not model.strip()):
        raise CodedError(INVALID, "model is required")
    checked = _with_checked_text(fields)
    if not isinstance(checked.get("messages"), list):
        raise CodedError(INVALID, "messages must be an array")
    problem = spec.check(checked)
    if problem is not None:
        raise CodedError(INVALID, problem)
    try:
        msgspec.convert(checked, _Shape)
    except msgspec.ValidationError:
        for index, message in enumerate(checked["messages"]):
            problem = _message_problem(message)
            if problem is not None:
                raise CodedError(INVALID, f"`messages.{index}`: {problem}") from None
    return Asked(fields)


def _with_checked_text(fields: dict[str, Any]) -> dict[str, Any]:
    """The request as far as it is still to be checked: a transcript that came as text is, when it has the shape."""
    text = fields.get("messages")
    if not isinstance(text, msgspec.Raw):
        return fields
    try:
        _decode_transcript(text)
    except msgspec.ValidationError:
        fields["messages"] = decode(bytes(text))
        return fields
    return {**fields, "messages": []}


def _message_problem(message: Any) -> str | None:
    if not isinstance(message, dict):
        return f"a message must be an object, got {shown(message)}"
    fields = cast("dict[str, Any]", message)
    role = fields.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        return f"`role` must be user, assistant, function_result or custom, got {shown(role)}"
    content = fields.get("content")
    if not isinstance(content, list):
        return f"`content` must be an array, got {shown(content)}"
    for block in cast("list[Any]", content):
        if not isinstance(block, dict) or not isinstance(cast("dict[str, Any]", block).get("type"), str):
            return "every block of `content` needs a string `type`"
    if role == "function_result" and not isinstance(fields.get("function_call_id"), str):
        return f"`function_call_id` must be a string, got {shown(fields.get('function_call_id'))}"
    return None
