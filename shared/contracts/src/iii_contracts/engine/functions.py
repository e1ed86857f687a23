"""What the engine tells about functions (engine spec 9.6, 12.1)."""

from typing import Literal

from pydantic import Field

from iii_contracts.model import Json, Wire
from iii_contracts.spec import FunctionSpec, TriggerSpec

INVALID = "deserialization_error"
"""The code of a request that an engine function cannot read (engine spec 5.4)."""

MAX_BATCH = 32
"""Distinct ids in one `engine::functions::info`."""


class FunctionsListRequest(Wire):
    """Filters of a listing of functions; they combine with AND."""

    search: str | None = Field(default=None, description="Text inside id or description, letter case ignored.")
    prefix: str | None = Field(default=None, description="What the id starts with.")
    worker: str | None = Field(default=None, description="Name of the owner.")
    workers: list[str] | None = Field(default=None, description="Names of owners; they add to `worker`.")
    include_internal: bool | None = Field(
        default=None, description="Also list functions of the engine and those marked as internal."
    )


class FunctionSummary(Wire):
    """One function in a listing."""

    function_id: str = Field(description="Id to call it by.")
    namespace: str = Field(description="Namespace it lives in.")
    worker_name: str = Field(description="Name of its owner.")
    description: str | None = Field(default=None, description="What it does.")
    metadata: Json = Field(default=None, description="Metadata of its registration.")


class FunctionsListResponse(Wire):
    """A listing of functions."""

    functions: list[FunctionSummary] = Field(description="One row per namespace and id.")


class FunctionsInfoRequest(Wire):
    """One function, or a batch of them: exactly one of the two fields."""

    function_id: str | None = Field(default=None, description="Id of the one function.")
    function_ids: list[str] | None = Field(default=None, description=f"Ids of a batch, 1 to {MAX_BATCH} distinct ones.")
    namespace: str | None = Field(
        default=None, description="Look only there; without it `default` wins, then the only namespace that has the id."
    )


class TriggerRef(Wire):
    """A binding as its function shows it."""

    id: str = Field(description="Id of the binding.")
    trigger_type: str = Field(description="Type that fires it.")
    config: Json = Field(description="Config of the binding.")


class FunctionDetail(FunctionSummary):
    """Everything about one function."""

    request_schema: Json = Field(default=None, description="JSON Schema of its request.")
    response_schema: Json = Field(default=None, description="JSON Schema of its result.")
    registered_triggers: list[TriggerRef] = Field(description="Bindings that fire it.")


class FunctionProblem(Wire):
    """An id of a batch that cannot be described."""

    function_id: str = Field(description="The id that was asked for.")
    error: Literal["not_found", "forbidden"] = Field(description="Why there is no detail.")


class FunctionsBatch(Wire):
    """The answer to a batch, in the order of the request."""

    functions: list[FunctionDetail | FunctionProblem] = Field(description="One entry per distinct id.")


class NoConfig(Wire):
    """A binding that needs no config."""


class FunctionsChanged(Wire):
    """The set of functions has changed."""

    event: Literal["functions_changed"] = Field(description="What happened.")
    functions: list[FunctionSummary] = Field(description="Every function there is now.")


FUNCTIONS_LIST = FunctionSpec(
    "engine::functions::list",
    "List the functions that can be called, with what they do. Filters narrow the list; internal ones show on request.",
    FunctionsListRequest,
    FunctionsListResponse,
    INVALID,
)


FUNCTIONS_INFO = FunctionSpec(
    "engine::functions::info",
    "Describe one function, or a batch of up to 32: request and response schema, owner, bindings.",
    FunctionsInfoRequest,
    FunctionDetail | FunctionsBatch,
    INVALID,
    errors=("INVALID_ARGUMENTS", "NOT_FOUND"),
)


FUNCTIONS_AVAILABLE = TriggerSpec(
    "engine::functions-available",
    "Fires with the whole list after functions have appeared or gone.",
    NoConfig,
    FunctionsChanged,
)


FUNCTIONS = (
    FUNCTIONS_LIST,
    FUNCTIONS_INFO,
)
TRIGGERS = (FUNCTIONS_AVAILABLE,)
