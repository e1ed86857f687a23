"""State (engine spec 13): values by scope and key, update operations, the `state` trigger."""

from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import AliasChoices, Field, model_validator

from iii_contracts.model import I64, Json, Wire
from iii_contracts.spec import FunctionSpec, TriggerSpec

INVALID = "deserialization_error"

Scope = Annotated[str, Field(description="Group of values; any text.")]
Key = Annotated[str, Field(description="Name of the value within its scope; any text.")]
FieldPath = Annotated[str, Field(description="A first-level key, dots literal; `` is the whole document.")]
MergePath = Annotated[
    str | list[str] | None,
    Field(description="A first-level key, or a list of keys that leads to a nested place; absent or empty: the root."),
]


class PlaceRequest(Wire):
    """Where a value lies."""

    scope: Scope
    key: Key


class SetRequest(Wire):
    """A value and its place."""

    scope: Scope
    key: Key
    value: Json = Field(
        validation_alias=AliasChoices("value", "data"), description="The value: any JSON. `data` is another name of it."
    )

    @model_validator(mode="before")
    @classmethod
    def _one_value(cls, data: Any) -> Any:
        if isinstance(data, dict) and "data" in data and "value" in data:
            raise ValueError("duplicate field `value`: it is given as `value` and as `data`")
        return cast("Any", data)


class Written(Wire):
    """What a write replaced, and what is there now."""

    old_value: Json = Field(description="The value before, null when there was none.")
    new_value: Json = Field(description="The value now.")


class SetOp(Wire):
    """Replace one key, or the document."""

    type: Literal["set"]
    path: FieldPath
    value: Json = Field(default=None, description="The new value; absent means null.")


class MergeOp(Wire):
    """Overwrite the keys of an object that `value` has."""

    type: Literal["merge"]
    path: MergePath = None
    value: Json = Field(description="An object whose keys are written over those of the target.")


class IncrementOp(Wire):
    """Add to a number."""

    type: Literal["increment"]
    path: FieldPath
    by: I64 = Field(description="What is added.")


class DecrementOp(Wire):
    """Subtract from a number."""

    type: Literal["decrement"]
    path: FieldPath
    by: I64 = Field(description="What is subtracted.")


class AppendOp(Wire):
    """Push to a list, or lengthen a text."""

    type: Literal["append"]
    path: MergePath = None
    value: Json = Field(description="The item, or the text that is added to a text.")


class RemoveOp(Wire):
    """Remove one key, or set the document to null."""

    type: Literal["remove"]
    path: FieldPath


UpdateOp: TypeAlias = Annotated[
    SetOp | MergeOp | IncrementOp | DecrementOp | AppendOp | RemoveOp, Field(discriminator="type")
]
"""One operation of an update, told apart by `type`."""


class UpdateRequest(Wire):
    """Operations on one value."""

    scope: Scope
    key: Key
    ops: list[UpdateOp] = Field(description="Operations, applied in this order; one that fails is skipped.")


class UpdateError(Wire):
    """An operation that was skipped."""

    op_index: int = Field(ge=0, description="Position of the operation in `ops`.")
    code: str = Field(description="What was wrong: `<operation>.<problem>`.")
    message: str = Field(description="The same for people.")
    doc_url: str | None = Field(default=None, description="Where it is explained.")


class UpdateResponse(Written):
    """What an update replaced, what is there now, and which operations were skipped."""

    errors: list[UpdateError] = Field(
        default_factory=list[UpdateError], description="Skipped operations; absent if none."
    )


class ListRequest(Wire):
    """Which scope."""

    scope: Scope


class ListGroupsRequest(Wire):
    """Nothing is asked for."""


class ListGroupsResponse(Wire):
    """The scopes in use."""

    groups: list[str] = Field(description="Scopes that hold a value, sorted.")


class StateConfig(Wire):
    """Which writes a binding hears of; what is absent or null matches all."""

    scope: str | None = Field(default=None, description="Only writes in this scope.")
    key: str | None = Field(default=None, description="Only writes of this key.")
    condition_function_id: str | None = Field(
        default=None, description="Called first with the event; answers false to skip the function."
    )


class StateEvent(Wire):
    """A write that has happened."""

    type: Literal["state"]
    event_type: Literal["state:created", "state:updated", "state:deleted"] = Field(description="What the write did.")
    scope: Scope
    key: Key
    old_value: Json = Field(description="The value before, or null.")
    new_value: Json = Field(description="The value now, or null.")


SET = FunctionSpec(
    "state::set",
    "Store a value; answers the old and the new one.",
    SetRequest,
    Written,
    INVALID,
    errors=("storage_failed",),
)
GET = FunctionSpec(
    "state::get", "The value at a place, or null.", PlaceRequest, None, INVALID, errors=("storage_failed",)
)
DELETE = FunctionSpec(
    "state::delete", "Remove a value; answers it, or null.", PlaceRequest, None, INVALID, errors=("storage_failed",)
)
UPDATE = FunctionSpec(
    "state::update",
    "Change a value in place, atomically. Operations that fail are reported in `errors`; the others are stored.",
    UpdateRequest,
    UpdateResponse,
    INVALID,
    errors=("storage_failed",),
)
LIST = FunctionSpec(
    "state::list",
    "All values of a scope, without their keys.",
    ListRequest,
    list[Json],
    INVALID,
    errors=("storage_failed",),
)
LIST_GROUPS = FunctionSpec(
    "state::list_groups", "All scopes that hold a value.", ListGroupsRequest, ListGroupsResponse, INVALID
)
CHANGED = TriggerSpec("state", "Fires after every accepted write of a value.", StateConfig, StateEvent)

FUNCTIONS = (SET, GET, DELETE, UPDATE, LIST, LIST_GROUPS)
TRIGGERS = (CHANGED,)
