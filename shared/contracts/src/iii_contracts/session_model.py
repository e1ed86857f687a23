"""Shapes of the session store: sessions, entries, transcript items, attachments (siblings 3.1, 3.2).

Messages and blocks are checked against their contract and handed on as the very objects that were given, so that a
store can keep them unchanged: fields it does not know stay, absent fields stay absent.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator

from iii_contracts.messages import AgentMessage, ContentBlock, Usage
from iii_contracts.model import I64, U64, Json, Wire

SessionStatus: TypeAlias = Literal["idle", "working", "done", "error"]
SessionKind: TypeAlias = Literal["user", "automation", "e2e"]
Role: TypeAlias = Literal["user", "assistant", "function_result", "custom"]
ListOrder: TypeAlias = Literal["updated_desc", "created_desc", "created_asc"]

MAX_ID = 512
"""Characters of a session, entry or attachment id that the store accepts."""

LINKAGE_KEYS = ("parent_session_id", "parent_turn_id", "function_call_id", "depth", "subagent_display")
"""Metadata keys that tie a session to its parent; a fork does not inherit them (siblings 3.2)."""


def _as_given(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    check(value)
    return value


if TYPE_CHECKING:
    GivenMessage = dict[str, Any]
    GivenBlock = dict[str, Any]
    GivenUsage = dict[str, Any]
else:
    GivenMessage = Annotated[AgentMessage, WrapValidator(_as_given)]
    GivenBlock = Annotated[ContentBlock, WrapValidator(_as_given)]
    GivenUsage = Annotated[Usage, WrapValidator(_as_given)]

SessionId = Annotated[str, Field(max_length=MAX_ID, description="The session.")]
EntryId = Annotated[str, Field(max_length=MAX_ID, description="The entry.")]
AttachmentId = Annotated[str, Field(max_length=MAX_ID, description="The attachment.")]


class AttachmentMeta(Wire):
    """What is known of an attachment without its bytes."""

    attachment_id: str = Field(description="Id within the session.")
    session_id: str = Field(description="The session that holds it.")
    name: str = Field(description="File name as given.")
    mime: str = Field(description="Media type as given.")
    size: U64 = Field(description="Bytes.")
    sha256: str = Field(description="Digest of the bytes, 64 hex digits.")
    created_at: I64 = Field(description="When it was stored.")


class SessionMeta(Wire):
    """Everything about a session but its entries."""

    session_id: str = Field(description="Id of the session.")
    title: str = Field(description="Shown in lists; empty when none was given.")
    description: str = Field(description="Longer text; empty when none was given.")
    status: SessionStatus = Field(description="Where the session is in its life.")
    status_reason: str | None = Field(default=None, description="Why, for any status but idle.")
    kind: SessionKind = Field(default="user", description="Who it is for; fixed at creation.")
    metadata: dict[str, Json] | None = Field(default=None, description="Data of the application; lists filter by it.")
    forked_from: str | None = Field(default=None, description="The session this one was forked from.")
    draft: str | None = Field(default=None, description="Text parked in the composer.")
    draft_attachments: list[AttachmentMeta] | None = Field(default=None, description="Attachments parked with it.")
    created_at: I64 = Field(description="When it was created.")
    updated_at: I64 = Field(description="When it last changed.")
    message_count: U64 = Field(description="Entries of kind `message` that are stored, on every branch.")


class CustomPayload(Wire):
    """The payload of a bookkeeping entry, such as a compaction record."""

    custom_type: str = Field(description="What kind of record it is.")
    data: Json = Field(description="Its content, any JSON.")


class MessageEntry(Wire):
    """An entry that holds a message of the conversation."""

    kind: Literal["message"]
    id: str = Field(description="Id of the entry.")
    parent_id: str | None = Field(description="The entry it follows; null for the first.")
    timestamp: I64 = Field(description="When it was appended.")
    revision: U64 = Field(description="How often its message was replaced.")
    origin: dict[str, Json] | None = Field(default=None, description="Who wrote it.")
    message: AgentMessage = Field(description="The message.")


class CustomEntry(Wire):
    """An entry of bookkeeping."""

    kind: Literal["custom"]
    id: str = Field(description="Id of the entry.")
    parent_id: str | None = Field(description="The entry it follows; null for the first.")
    timestamp: I64 = Field(description="When it was appended.")
    revision: U64 = Field(description="Always 0.")
    origin: dict[str, Json] | None = Field(default=None, description="Who wrote it.")
    custom_type: str = Field(description="What kind of record it is.")
    data: Json = Field(description="Its content.")


SessionEntry: TypeAlias = Annotated[MessageEntry | CustomEntry, Field(discriminator="kind")]
"""A stored entry, told apart by `kind`."""


class TranscriptItem(Wire):
    """An entry as readers of a transcript get it: exactly one of `message` and `custom`."""

    entry_id: str = Field(description="Id of the entry.")
    message: AgentMessage | None = Field(default=None, description="The message.")
    custom: CustomPayload | None = Field(default=None, description="The bookkeeping record.")
    origin: dict[str, Json] | None = Field(default=None, description="Who wrote it.")
    elided: bool | None = Field(default=None, description="True when parts were left out (messages-tail only).")
