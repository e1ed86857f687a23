"""Functions and trigger types of the session store, declared once (siblings 3.2, 3.8, 3.9)."""

from typing import Annotated, Any

from pydantic import Field

from iii_contracts import session_calls as calls
from iii_contracts.messages import AgentMessage
from iii_contracts.model import I64, U64, Closed, Json, Wire
from iii_contracts.session_model import CustomPayload, SessionStatus
from iii_contracts.spec import FunctionSpec, TriggerSpec

NOT_FOUND = "session/not_found"
ENTRY_NOT_FOUND = "session/entry_not_found"
PARENT_NOT_FOUND = "session/parent_not_found"
INVALID_ENTRY_KIND = "session/invalid_entry_kind"
DETAILS_NOT_SUPPORTED = "session/details_not_supported"
EMPTY_BATCH = "session/empty_batch"
INVALID_CURSOR = "session/invalid_cursor"
INVALID_REQUEST = "session/invalid_request"
ATTACHMENT_TOO_LARGE = "session/attachment_too_large"
ATTACHMENT_IN_USE = "session/attachment_in_use"
STORAGE = "session/storage"

Filter = Annotated[dict[str, Json] | None, Field(description="Keys that must equal those of the session's metadata.")]
OneSession = Annotated[str | None, Field(description="Only this session.")]


class OfAnySession(Closed):
    """Filter of bindings that hear of sessions coming into being."""

    metadata: Filter = None


class OfSessions(OfAnySession):
    """Filter of bindings that hear of changes of sessions."""

    session_id: OneSession = None


class OfMessages(OfSessions):
    """Filter of bindings that hear of messages; with `roles`, bookkeeping entries never match."""

    roles: list[str] | None = Field(default=None, description="Only messages of these roles.")


class Created(Wire):
    """A session came into being."""

    session_id: str = Field(description="The session.")
    title: str = Field(description="Its title.")
    description: str = Field(description="Its description.")
    status: SessionStatus = Field(description="Its status.")
    forked_from: str | None = Field(default=None, description="The session it was forked from.")
    created_at: I64 = Field(description="When.")


class MessageAdded(Wire):
    """An entry was appended: exactly one of `message` and `custom`."""

    session_id: str = Field(description="The session.")
    entry_id: str = Field(description="The new entry.")
    parent_id: str | None = Field(description="The entry it follows.")
    message: AgentMessage | None = Field(default=None, description="The message.")
    custom: CustomPayload | None = Field(default=None, description="The bookkeeping record.")
    origin: dict[str, Json] | None = Field(default=None, description="Who wrote it.")
    timestamp: I64 = Field(description="When.")


class MessageUpdated(Wire):
    """A message was replaced."""

    session_id: str = Field(description="The session.")
    entry_id: str = Field(description="The entry.")
    message: AgentMessage = Field(description="The whole new message.")
    revision: U64 = Field(description="Its revision.")
    origin: dict[str, Json] | None = Field(default=None, description="Who wrote it.")
    timestamp: I64 = Field(description="When.")


class StatusChanged(Wire):
    """The status or its reason changed."""

    session_id: str = Field(description="The session.")
    status: SessionStatus = Field(description="The status now.")
    previous_status: SessionStatus = Field(description="The status before.")
    status_reason: str | None = Field(default=None, description="Why.")
    timestamp: I64 = Field(description="When.")


class MetaUpdated(Wire):
    """Title, description or metadata changed."""

    session_id: str = Field(description="The session.")
    title: str = Field(description="The title now.")
    description: str = Field(description="The description now.")
    metadata: dict[str, Json] | None = Field(default=None, description="The whole map now.")
    timestamp: I64 = Field(description="When.")


class Deleted(Wire):
    """A session is gone."""

    session_id: str = Field(description="The session.")
    timestamp: I64 = Field(description="When.")


def _function(name: str, says: str, request: Any, response: Any, *errors: str) -> FunctionSpec:
    return FunctionSpec(
        f"session::{name}", says, request, response, INVALID_REQUEST, metadata={"embedded": True}, errors=errors
    )


CREATE = _function("create", "Create a session with a fresh id.", calls.CreateRequest, calls.CreateResponse)
ENSURE = _function(
    "ensure",
    "Create the session when it is missing, else read it unchanged.",
    calls.EnsureRequest,
    calls.EnsureResponse,
)
GET = _function("get", "Read one session; null when unknown.", calls.OfSession, calls.MetaResponse | None)
LIST = _function("list", "List sessions in pages.", calls.ListRequest, calls.ListResponse, INVALID_CURSOR)
SET_META = _function(
    "set-meta",
    "Change title or description, or replace the metadata map.",
    calls.SetMetaRequest,
    calls.MetaResponse,
    NOT_FOUND,
)
SET_DRAFT = _function(
    "set-draft",
    "Park what the composer holds; tells nobody.",
    calls.SetDraftRequest,
    calls.SetDraftResponse,
    NOT_FOUND,
)
SET_STATUS = _function(
    "set-status", "Set the life-cycle status.", calls.SetStatusRequest, calls.SetStatusResponse, NOT_FOUND
)
DELETE = _function(
    "delete", "Delete a session with its entries and attachments.", calls.OfSession, calls.DeletedResponse
)
APPEND = _function(
    "append",
    "Append one entry and move the active leaf to it; an entry id that exists changes nothing.",
    calls.AppendRequest,
    calls.AppendResponse,
    NOT_FOUND,
    PARENT_NOT_FOUND,
)
APPEND_MANY = _function(
    "append-many",
    "Append messages as a chain.",
    calls.AppendManyRequest,
    calls.AppendManyResponse,
    NOT_FOUND,
    PARENT_NOT_FOUND,
    EMPTY_BATCH,
)
UPDATE_MESSAGE = _function(
    "update-message",
    "Replace the content of a message.",
    calls.UpdateMessageRequest,
    calls.UpdateMessageResponse,
    NOT_FOUND,
    ENTRY_NOT_FOUND,
    INVALID_ENTRY_KIND,
    DETAILS_NOT_SUPPORTED,
)
MESSAGES = _function(
    "messages",
    "Read the active path, oldest first.",
    calls.MessagesRequest,
    calls.MessagesResponse,
    NOT_FOUND,
    INVALID_CURSOR,
    ENTRY_NOT_FOUND,
)
MESSAGES_TAIL = _function(
    "messages-tail",
    "Read the newest blocks of the active path, with old calls shortened.",
    calls.TailRequest,
    calls.TailResponse,
    NOT_FOUND,
    INVALID_CURSOR,
)
MESSAGES_RANGE = _function(
    "messages-range",
    "Read whole entries of a span or by their ids.",
    calls.RangeRequest,
    calls.MessagesResponse,
    NOT_FOUND,
    INVALID_CURSOR,
    ENTRY_NOT_FOUND,
)
GET_MESSAGE = _function(
    "get-message", "Read one entry; null when unknown.", calls.GetMessageRequest, calls.EntryResponse | None
)
FORK = _function(
    "fork",
    "Copy the path up to an entry into a new session.",
    calls.ForkRequest,
    calls.CreateResponse,
    NOT_FOUND,
    ENTRY_NOT_FOUND,
)
SET_ACTIVE_LEAF = _function(
    "set-active-leaf",
    "Continue the session from another entry; tells nobody.",
    calls.SetActiveLeafRequest,
    calls.SetActiveLeafResponse,
    NOT_FOUND,
    ENTRY_NOT_FOUND,
)
PUT_ATTACHMENT = _function(
    "put-attachment",
    "Store a file.",
    calls.PutAttachmentRequest,
    calls.PutAttachmentResponse,
    NOT_FOUND,
    ATTACHMENT_TOO_LARGE,
)
GET_ATTACHMENT = _function(
    "get-attachment",
    "Read a file; null when unknown.",
    calls.GetAttachmentRequest,
    calls.GetAttachmentResponse | None,
)
LIST_ATTACHMENTS = _function(
    "list-attachments", "List the files of a session.", calls.OfSession, calls.AttachmentsResponse
)
DELETE_ATTACHMENT = _function(
    "delete-attachment",
    "Delete a file that nothing refers to.",
    calls.AttachmentRequest,
    calls.DeletedResponse,
    NOT_FOUND,
    ATTACHMENT_IN_USE,
)

FUNCTIONS = (
    CREATE, ENSURE, GET, LIST, SET_META, SET_DRAFT, SET_STATUS, DELETE, APPEND, APPEND_MANY, UPDATE_MESSAGE, MESSAGES,
    MESSAGES_TAIL, MESSAGES_RANGE, GET_MESSAGE, FORK, SET_ACTIVE_LEAF, PUT_ATTACHMENT, GET_ATTACHMENT,
    LIST_ATTACHMENTS, DELETE_ATTACHMENT,
)  # fmt: skip
"""Everything the session store serves."""

CREATED = TriggerSpec("session::created", "A session was created, ensured into being or forked.", OfAnySession, Created)
MESSAGE_ADDED = TriggerSpec("session::message-added", "An entry was appended.", OfMessages, MessageAdded)
MESSAGE_UPDATED = TriggerSpec("session::message-updated", "A message was replaced.", OfMessages, MessageUpdated)
STATUS_CHANGED = TriggerSpec("session::status-changed", "Status or reason changed.", OfSessions, StatusChanged)
META_UPDATED = TriggerSpec("session::meta-updated", "Title, description or metadata changed.", OfSessions, MetaUpdated)
DELETED = TriggerSpec("session::deleted", "A session was deleted.", OfSessions, Deleted)

TRIGGERS = (CREATED, MESSAGE_ADDED, MESSAGE_UPDATED, STATUS_CHANGED, META_UPDATED, DELETED)
"""Everything the session store tells."""
