"""Messages, content blocks and their parts, shared by every worker (siblings 2, harness-loop 2.1)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import ConfigDict, Discriminator, Field, Tag, WithJsonSchema

from iii_contracts.model import F64, I64, U64, Json, Wire

StopReason: TypeAlias = Literal["end", "length", "function_call", "aborted", "error"]
ErrorKind: TypeAlias = Literal["auth_expired", "rate_limited", "context_overflow", "transient", "permanent"]
ThinkingLevel: TypeAlias = Literal["minimal", "low", "medium", "high", "xhigh"]

RETRYABLE: frozenset[str] = frozenset({"rate_limited", "transient"})
"""Error kinds after which the same request may succeed."""


class TextBlock(Wire):
    """Plain text."""

    type: Literal["text"]
    text: str


class ImageBlock(Wire):
    """An image, base64; with `attachment_id` readers may blank `data`."""

    type: Literal["image"]
    mime: str
    data: str
    attachment_id: str | None = None


class FileBlock(Wire):
    """A reference to an attachment; never sent to a model."""

    type: Literal["file"]
    attachment_id: str
    name: str
    mime: str
    size: U64


class ThinkingBlock(Wire):
    """Reasoning text; `signature` is replayed to the provider that made it."""

    type: Literal["thinking"]
    text: str
    signature: str | None = None


class RedactedThinkingBlock(Wire):
    """Opaque reasoning, replayed verbatim."""

    type: Literal["redacted_thinking"]
    data: str


class FunctionCallBlock(Wire):
    """A call that the model asks for."""

    type: Literal["function_call"]
    id: str
    function_id: str
    arguments: Json = None


class FunctionResultBlock(Wire):
    """An inline result inside a user message."""

    type: Literal["function_result"]
    function_call_id: str
    content: list[ContentBlock]
    is_error: bool | None = None


_KNOWN = ("text", "image", "file", "thinking", "redacted_thinking", "function_call", "function_result")

_OtherKind = Annotated[str, WithJsonSchema({"type": "string", "not": {"enum": list(_KNOWN)}})]


class OtherBlock(Wire):
    """A block of a kind this version does not know: kept as it is."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    type: _OtherKind


def _block_tag(value: Any) -> str | None:
    kind = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else getattr(value, "type", None)
    if not isinstance(kind, str):
        return None
    return kind if kind in _KNOWN else "other"


ContentBlock: TypeAlias = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ImageBlock, Tag("image")]
    | Annotated[FileBlock, Tag("file")]
    | Annotated[ThinkingBlock, Tag("thinking")]
    | Annotated[RedactedThinkingBlock, Tag("redacted_thinking")]
    | Annotated[FunctionCallBlock, Tag("function_call")]
    | Annotated[FunctionResultBlock, Tag("function_result")]
    | Annotated[OtherBlock, Tag("other")],
    Discriminator(
        _block_tag, custom_error_type="block_type", custom_error_message="a content block needs a string `type`"
    ),
]
"""A content block, told apart by `type`."""


class Usage(Wire):
    """Token counts and cost of one generation; what is not reported is absent, never zero."""

    input: U64 | None = None
    output: U64 | None = None
    cache_read: U64 | None = None
    cache_write: U64 | None = None
    reasoning: U64 | None = None
    cost_usd: F64 | None = None


class UserMessage(Wire):
    """What a person, or a worker for one, says."""

    role: Literal["user"]
    content: list[ContentBlock]
    timestamp: I64


class AssistantMessage(Wire):
    """One generation of a model."""

    role: Literal["assistant"]
    content: list[ContentBlock]
    stop_reason: StopReason
    model: str
    provider: str
    timestamp: I64
    native_stop_reason: str | None = None
    error_message: str | None = None
    error_kind: ErrorKind | None = None
    warnings: list[str] | None = None
    usage: Usage | None = None
    agent: str | None = None


class FunctionResultMessage(Wire):
    """The result of one call."""

    role: Literal["function_result"]
    function_call_id: str
    function_id: str
    content: list[ContentBlock]
    timestamp: I64
    details: Json = None
    is_error: bool = False


class CustomMessage(Wire):
    """Something shown in the conversation and never sent to a model."""

    role: Literal["custom"]
    custom_type: str
    content: list[ContentBlock]
    timestamp: I64
    display: str | None = None
    details: Json = None


AgentMessage: TypeAlias = Annotated[
    UserMessage | AssistantMessage | FunctionResultMessage | CustomMessage, Field(discriminator="role")
]
"""A message of a transcript, told apart by `role`."""
