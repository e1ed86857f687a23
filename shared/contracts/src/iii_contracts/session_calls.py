"""Requests and responses of the session store (siblings 3.2)."""

from typing import Annotated

from pydantic import Field, WithJsonSchema

from iii_contracts.messages import ErrorKind, FileBlock, StopReason
from iii_contracts.model import I64, U64, Json, Wire
from iii_contracts.session_model import (
    MAX_ID,
    AttachmentId,
    AttachmentMeta,
    CustomPayload,
    EntryId,
    GivenBlock,
    GivenMessage,
    GivenUsage,
    ListOrder,
    Role,
    SessionEntry,
    SessionId,
    SessionKind,
    SessionMeta,
    SessionStatus,
    TranscriptItem,
)

PageSize = Annotated[
    int, Field(ge=1, le=2**32 - 1), WithJsonSchema({"type": "integer", "format": "uint32", "minimum": 1})
]
Limit = Annotated[PageSize | None, Field(description="Items in a page; more than the maximum (500) is cut to it.")]
Cursor = Annotated[str | None, Field(description="`next_cursor` of the page before.")]
Metadata = Annotated[dict[str, Json] | None, Field(description="Keys that must equal those of the session's metadata.")]
Origin = Annotated[dict[str, Json] | None, Field(description="Who writes; stored with the entry and told in events.")]
ImageData = Annotated[bool, Field(description="False blanks the bytes of images that are attachments.")]


class OfSession(Wire):
    """A request about one session."""

    session_id: SessionId


class CreateRequest(Wire):
    """What a new session starts with."""

    title: str | None = Field(default=None, description="Shown in lists.")
    description: str | None = Field(default=None, description="Longer text.")
    metadata: dict[str, Json] | None = Field(default=None, description="Data of the application.")
    kind: SessionKind | None = Field(default=None, description="Who it is for; `user` when left out.")


class EnsureRequest(CreateRequest):
    """A session by id, and what it starts with when it has to be created."""

    session_id: SessionId = Field(min_length=1)


class CreateResponse(Wire):
    """The new session."""

    session_id: str = Field(description="Its id.")
    meta: SessionMeta = Field(description="Its data.")


class EnsureResponse(CreateResponse):
    """The session, and whether this call created it."""

    created: bool = Field(description="True when it did not exist before.")


class MetaResponse(Wire):
    """One session."""

    meta: SessionMeta = Field(description="Its data.")


class ListRequest(Wire):
    """Which sessions, in which order."""

    limit: Limit = None
    cursor: Cursor = None
    status: SessionStatus | None = Field(default=None, description="Only sessions with this status.")
    metadata: Metadata = None
    order: ListOrder | None = Field(default=None, description="`updated_desc` when left out.")


class ListResponse(Wire):
    """A page of sessions."""

    sessions: list[SessionMeta] = Field(description="In the order asked for; ties by id.")
    next_cursor: str | None = Field(default=None, description="Absent on the last page.")


class SetMetaRequest(OfSession):
    """What to change; what is left out stays."""

    title: str | None = Field(default=None, description="New title.")
    description: str | None = Field(default=None, description="New description.")
    metadata: dict[str, Json] | None = Field(default=None, description="Replaces the whole map.")


class SetDraftRequest(OfSession):
    """What the composer holds and has not sent."""

    draft: str | None = Field(default=None, description="Blank or null clears it; left out it stays.")
    attachment_ids: list[AttachmentId] | None = Field(default=None, description="Replaces the list; `[]` clears it.")


class SetDraftResponse(Wire):
    """The draft as it now is."""

    draft: str | None = Field(description="Null when there is none.")


class SetStatusRequest(OfSession):
    """The status to set."""

    status: SessionStatus = Field(description="New status.")
    reason: str | None = Field(default=None, description="Why; not kept for `idle`.")


class SetStatusResponse(Wire):
    """Now and before."""

    status: SessionStatus = Field(description="The status now.")
    previous_status: SessionStatus = Field(description="The status before.")


class DeletedResponse(Wire):
    """Whether there was something to delete."""

    deleted: bool = Field(description="False when it did not exist.")


class AppendRequest(OfSession):
    """One entry to append: exactly one of `message` and `custom`."""

    message: GivenMessage | None = Field(default=None, description="A message of the conversation.")
    custom: CustomPayload | None = Field(default=None, description="A bookkeeping record.")
    parent_id: EntryId | None = Field(default=None, description="The entry to follow; the active leaf when left out.")
    entry_id: Annotated[str, Field(min_length=1, max_length=MAX_ID)] | None = Field(
        default=None, description="Id to give it; appending an id again changes nothing."
    )
    origin: Origin = None


class AppendResponse(Wire):
    """The stored entry."""

    entry_id: str = Field(description="Its id.")
    parent_id: str | None = Field(description="The entry it follows.")
    timestamp: I64 = Field(description="When it was appended.")


class AppendManyRequest(OfSession):
    """Messages to append one after the other."""

    messages: list[GivenMessage] = Field(description="At least one.", json_schema_extra={"minItems": 1})
    parent_id: EntryId | None = Field(default=None, description="The entry to follow; the active leaf when left out.")
    origin: Origin = None


class AppendManyResponse(Wire):
    """Ids of the new entries."""

    entry_ids: list[str] = Field(description="In the order of the messages.")
    last_entry_id: str = Field(description="The last of them, now the active leaf.")


class UpdateMessageRequest(OfSession):
    """New content of a message. The fields from `provider` on are kept by the embedded store alone (siblings 3.5)."""

    entry_id: EntryId
    content: list[GivenBlock] = Field(description="Replaces the content.")
    details: Json = Field(default=None, description="For function results and custom messages.")
    usage: GivenUsage | None = Field(default=None, description="For assistant messages.")
    expected_revision: U64 | None = Field(default=None, description="Write only when this is the stored revision.")
    origin: Origin = None
    provider: str | None = Field(default=None, description="Provider that answered, for assistant messages.")
    stop_reason: StopReason | None = Field(default=None, description="Why it ended, for assistant messages.")
    native_stop_reason: str | None = Field(default=None, description="The provider's own word for it.")
    error_kind: ErrorKind | None = Field(default=None, description="What kind of failure ended it.")
    error_message: str | None = Field(default=None, description="Text of that failure.")
    warnings: list[str] | None = Field(default=None, description="What the provider warned of.")


class UpdateMessageResponse(Wire):
    """Whether it was written."""

    updated: bool = Field(description="False when the revision was another one.")
    revision: U64 = Field(description="The stored revision now.")


class MessagesRequest(OfSession):
    """Which part of the active path to read."""

    limit: Limit = None
    cursor: Cursor = None
    roles: list[Role] | None = Field(default=None, description="Only these roles; drops bookkeeping entries.")
    from_entry_id: EntryId | None = Field(default=None, description="End the path here instead of at the active leaf.")
    after_entry_id: EntryId | None = Field(default=None, description="Only what follows this entry.")
    include_custom: bool = Field(default=False, description="Add bookkeeping entries.")
    include_image_data: ImageData = True


class MessagesResponse(Wire):
    """A page of the path, oldest first."""

    messages: list[TranscriptItem] = Field(description="The entries.")
    next_cursor: str | None = Field(default=None, description="Absent on the last page.")


class TailRequest(OfSession):
    """Which end of the active path to read."""

    limit: Annotated[PageSize | None, Field(description="Blocks in the page (50).")] = None
    before_entry_id: EntryId | None = Field(default=None, description="Only blocks older than this entry.")
    until_entry_id: EntryId | None = Field(default=None, description="Reach back at least to this entry.")
    include_custom: bool = Field(default=True, description="Include bookkeeping entries.")
    include_image_data: ImageData = True


class TailResponse(Wire):
    """The newest blocks, oldest first."""

    messages: list[TranscriptItem] = Field(description="The entries of whole blocks.")
    has_more: bool = Field(description="True when older blocks exist.")
    oldest_entry_id: str | None = Field(default=None, description="First entry of the page; `before` of the next one.")


class RangeRequest(OfSession):
    """Whole entries by span or by ids; exactly one selector."""

    from_entry_id: EntryId | None = Field(default=None, description="First entry of the span.")
    to_entry_id: EntryId | None = Field(default=None, description="Last entry of the span.")
    entry_ids: list[EntryId] | None = Field(default=None, description="Single entries of the active path.")
    limit: Limit = None
    cursor: Cursor = None
    include_image_data: ImageData = True


class GetMessageRequest(OfSession):
    """One entry."""

    entry_id: EntryId
    include_image_data: ImageData = True


class EntryResponse(Wire):
    """The whole entry."""

    entry: SessionEntry = Field(description="As stored.")


class ForkRequest(OfSession):
    """Where to fork."""

    entry_id: EntryId
    title: str | None = Field(default=None, description="Title of the fork; that of the original when left out.")


class SetActiveLeafRequest(OfSession):
    """The entry to continue from."""

    entry_id: EntryId


class SetActiveLeafResponse(Wire):
    """The leaf now."""

    active_leaf: str = Field(description="Id of the entry.")


class PutAttachmentRequest(OfSession):
    """A file to store."""

    name: str = Field(description="File name.")
    mime: str = Field(description="Media type.")
    data: str = Field(description="The bytes, base64.")


class PutAttachmentResponse(Wire):
    """The stored file."""

    attachment: AttachmentMeta = Field(description="What is known of it.")
    block: FileBlock = Field(description="A content block that refers to it.")


class AttachmentRequest(OfSession):
    """One attachment."""

    attachment_id: AttachmentId


class GetAttachmentRequest(AttachmentRequest):
    """One attachment, with or without its bytes."""

    include_data: bool = Field(default=False, description="Also return the bytes.")


class GetAttachmentResponse(Wire):
    """The attachment."""

    attachment: AttachmentMeta = Field(description="What is known of it.")
    data: str | None = Field(description="The bytes in base64, or null when not asked for.")


class AttachmentsResponse(Wire):
    """Attachments of a session."""

    attachments: list[AttachmentMeta] = Field(description="Oldest first.")
