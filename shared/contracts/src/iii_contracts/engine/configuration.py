"""Configuration entries (engine spec 16, siblings 10) and the `configuration` trigger."""

from typing import Annotated, Literal

from pydantic import Field

from iii_contracts.model import Json, Wire
from iii_contracts.spec import FunctionSpec, TriggerSpec

INVALID = "deserialization_error"

EntryId = Annotated[str, Field(description="Id of the entry: 1 to 64 of a-z, 0-9, `_` and `-`.")]


class RegisterRequest(Wire):
    """An entry as its owner declares it."""

    id: EntryId
    name: str = Field(description="Name for people.")
    description: str = Field(description="What it configures.")
    schema_: Json = Field(alias="schema", description="JSON Schema of the value; null for none.")
    initial_value: Json = Field(
        default=None, description="Value to store, over a stored one too; null or absent keeps what is stored."
    )
    metadata: Json = Field(default=None, description="Anything its owner wants to keep with the entry.")


class EnsureRequest(Wire):
    """An entry with the value it starts with."""

    id: EntryId
    name: str = Field(description="Name for people.")
    description: str = Field(description="What it configures.")
    schema_: Json = Field(alias="schema", description="JSON Schema of the value; null for none.")
    initial_value: Json = Field(description="Value to store when none is stored.")
    metadata: Json = Field(default=None, description="Anything its owner wants to keep with the entry.")


class EntryView(Wire):
    """An entry without its value."""

    id: EntryId
    name: str = Field(description="Name for people.")
    description: str = Field(description="What it configures.")
    schema_: Json = Field(alias="schema", description="JSON Schema of the value, null when none is known.")
    metadata: Json = Field(default=None, description="What its owner keeps with the entry; absent if nothing.")


class Entry(EntryView):
    """An entry and its stored value."""

    value: Json = Field(description="The stored value, placeholders unexpanded; null when none is stored.")


class EnsureResponse(Wire):
    """What became of the value, and the entry."""

    action: Literal["seeded", "preserved"] = Field(description="Whether the initial value was stored.")
    entry: Entry = Field(description="The entry.")


class GetRequest(Wire):
    """Which entry, and how it is read."""

    id: EntryId
    raw: bool | None = Field(default=None, description="Answer the stored value: not expanded, not judged.")


class GetResponse(Wire):
    """The value of an entry."""

    id: EntryId
    value: Json = Field(description="The value, `${VAR}` and `${VAR:default}` expanded unless read raw.")


class SetRequest(Wire):
    """A new value of an entry."""

    id: EntryId
    value: Json = Field(description="The whole value; `${VAR}` and `${VAR:default}` are kept as text.")


class SetResponse(Wire):
    """What the write replaced, and what is there now."""

    old_value: Json = Field(description="The stored value before.")
    new_value: Json = Field(description="The stored value now.")


class ListRequest(Wire):
    """Nothing is asked for."""


class ListResponse(Wire):
    """All entries without their values."""

    configurations: list[EntryView] = Field(description="Entries, sorted by id.")


class SchemaRequest(Wire):
    """Which entry."""

    id: EntryId


class ConfigurationConfig(Wire):
    """Which changes a binding hears of; what is absent or null matches all."""

    configuration_id: str | None = Field(default=None, description="Only changes of this entry.")
    event_types: list[str] | None = Field(default=None, description="Only these event types.")
    condition_function_id: str | None = Field(
        default=None, description="Called first with the event; answers false to skip the function."
    )


class ConfigurationEvent(Wire):
    """A change of an entry. A hint: events may overtake each other, so fetch the entry."""

    type: Literal["configuration"]
    event_type: Literal["configuration:registered", "configuration:updated", "configuration:deleted"]
    id: EntryId
    name: str = Field(description="Name for people.")
    description: str = Field(description="What the entry configures.")
    schema_: Json = Field(alias="schema", description="JSON Schema of the value, or null.")
    old_value: Json = Field(description="The value before, expanded where that is possible.")
    new_value: Json = Field(description="The value now, expanded where that is possible.")
    metadata: Json = Field(default=None, description="What its owner keeps with the entry; absent if nothing.")


REGISTER = FunctionSpec(
    "configuration::register",
    "Declare an entry. A known one keeps its value, unless an initial value is given.",
    RegisterRequest,
    Entry,
    INVALID,
    errors=("INVALID_ID", "SCHEMA_INVALID"),
)
ENSURE = FunctionSpec(
    "configuration::ensure",
    "Declare an entry and store its initial value if it has none yet; a stored value is never replaced.",
    EnsureRequest,
    EnsureResponse,
    INVALID,
    errors=("INVALID_ID", "SCHEMA_INVALID"),
)
GET = FunctionSpec(
    "configuration::get",
    "The value of an entry, with its placeholders expanded from the environment.",
    GetRequest,
    GetResponse,
    INVALID,
    errors=("NOT_FOUND", "SCHEMA_INVALID", "EXPAND_FAILED"),
)
SET = FunctionSpec(
    "configuration::set",
    "Replace the value of an entry, if it fits the schema.",
    SetRequest,
    SetResponse,
    INVALID,
    errors=("NOT_REGISTERED", "INVALID_ID", "SCHEMA_INVALID", "SCHEMA_UNAVAILABLE"),
)
LIST = FunctionSpec("configuration::list", "All entries, without their values.", ListRequest, ListResponse, INVALID)
SCHEMA = FunctionSpec(
    "configuration::schema",
    "An entry without its value.",
    SchemaRequest,
    EntryView,
    INVALID,
    errors=("NOT_FOUND",),
)
CHANGED = TriggerSpec(
    "configuration", "Fires after an entry was registered or changed.", ConfigurationConfig, ConfigurationEvent
)

FUNCTIONS = (REGISTER, ENSURE, GET, SET, LIST, SCHEMA)
TRIGGERS = (CHANGED,)
