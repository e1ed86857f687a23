"""Trigger types and bindings: what the engine tells, and binding by function (engine spec 9.4, 12.3)."""

from pydantic import Field

from iii_contracts.engine.functions import INVALID, FunctionDetail
from iii_contracts.model import U64, Json, Wire
from iii_contracts.spec import FunctionSpec, TriggerSpec


class TriggerTypeSummary(Wire):
    """One trigger type in a listing."""

    id: str = Field(description="Id of the type.")
    namespace: str = Field(description="Namespace it is provided in.")
    worker_name: str = Field(description="Name of its provider.")
    description: str = Field(description="When it fires.")


class RegisteredTriggerSummary(Wire):
    """One binding in a listing."""

    id: str = Field(description="Id of the binding.")
    trigger_type: str = Field(description="Type that fires it.")
    function_id: str = Field(description="Function that is called.")
    worker_name: str = Field(description="Name of the owner of that function.")
    config: Json = Field(description="Config of the binding.")
    config_summary: str = Field(description="Start of the config as text.")


class TriggersListRequest(Wire):
    """Filters of a listing of trigger types."""

    search: str | None = Field(default=None, description="Text inside id or description, letter case ignored.")
    prefix: str | None = Field(default=None, description="What the id starts with.")
    worker: str | None = Field(default=None, description="Name of the provider.")
    include_internal: bool | None = Field(default=None, description="Also list types whose id starts with `engine::`.")


class TriggersListResponse(Wire):
    """A listing of trigger types."""

    triggers: list[TriggerTypeSummary] = Field(description="The types.")


class TriggersInfoRequest(Wire):
    """Which trigger type to describe."""

    id: str = Field(description="Id of the type.")
    namespace: str | None = Field(default=None, description="Namespace of the provider; `default` without it.")


class TriggerTypeDetail(TriggerTypeSummary):
    """Everything about one trigger type."""

    configuration_schema: Json = Field(default=None, description="JSON Schema of a binding's config.")
    request_schema: Json = Field(default=None, description="JSON Schema of what a bound function gets.")
    instance_count: U64 = Field(description="Active bindings.")


class RegisteredTriggersListRequest(Wire):
    """Filters of a listing of bindings."""

    search: str | None = Field(default=None, description="Text inside id, type or function, letter case ignored.")
    trigger_type: str | None = Field(default=None, description="Exact type.")
    function_id: str | None = Field(default=None, description="Exact function.")
    worker: str | None = Field(default=None, description="Name of the owner of the function.")
    include_internal: bool | None = Field(default=None, description="Also list bindings of engine functions.")


class RegisteredTriggersListResponse(Wire):
    """A listing of bindings, by id."""

    registered_triggers: list[RegisteredTriggerSummary] = Field(description="The active bindings.")


class RegisteredTriggersInfoRequest(Wire):
    """Which binding to describe."""

    id: str = Field(description="Id of the binding.")


class RegisteredTriggerDetail(Wire):
    """A binding with its type and its function."""

    id: str = Field(description="Id of the binding.")
    trigger_type: str = Field(description="Type that fires it.")
    function_id: str = Field(description="Function that is called.")
    worker_name: str = Field(description="Name of the owner of that function.")
    config: Json = Field(description="Config of the binding.")
    metadata: Json = Field(default=None, description="Metadata of the binding.")
    trigger: TriggerTypeDetail | None = Field(description="The type, or null.")
    function: FunctionDetail | None = Field(description="The function, or null while it does not exist.")


class RegisterTriggerRequest(Wire):
    """A binding without an owner."""

    trigger_type: str = Field(description="Type that shall fire.")
    function_id: str = Field(description="Function to call, in namespace `default`.")
    config: Json = Field(default=None, description="Config as the type wants it.")
    metadata: Json = Field(default=None, description="Metadata that travels with every firing.")
    trigger_namespace: str | None = Field(default=None, description="Namespace of the provider; `default` without it.")


class RegisterTriggerResponse(Wire):
    """The new binding."""

    id: str = Field(description="Id to withdraw it by.")


class UnregisterTriggerRequest(Wire):
    """Which binding to withdraw."""

    id: str = Field(description="Id of the binding.")
    trigger_type: str | None = Field(default=None, description="Not looked at.")


class UnregisterTriggerResponse(Wire):
    """Whether there was such a binding."""

    removed: bool = Field(description="False for an unknown id.")


TRIGGERS_LIST = FunctionSpec(
    "engine::triggers::list",
    "List the trigger types that functions can be bound to.",
    TriggersListRequest,
    TriggersListResponse,
    INVALID,
)


TRIGGERS_INFO = FunctionSpec(
    "engine::triggers::info",
    "Describe one trigger type: the config a binding needs and the payload its functions get.",
    TriggersInfoRequest,
    TriggerTypeDetail,
    INVALID,
    errors=("NOT_FOUND",),
)


REGISTERED_TRIGGERS_LIST = FunctionSpec(
    "engine::registered-triggers::list",
    "List the active bindings of functions to trigger types.",
    RegisteredTriggersListRequest,
    RegisteredTriggersListResponse,
    INVALID,
)


REGISTERED_TRIGGERS_INFO = FunctionSpec(
    "engine::registered-triggers::info",
    "Describe one active binding with its trigger type and its function.",
    RegisteredTriggersInfoRequest,
    RegisteredTriggerDetail,
    INVALID,
    errors=("NOT_FOUND",),
)


REGISTER_TRIGGER = FunctionSpec(
    "engine::register_trigger",
    "Bind a function to a trigger type; answers once the provider has accepted. The binding outlives its maker.",
    RegisterTriggerRequest,
    RegisterTriggerResponse,
    INVALID,
    errors=("trigger_registration_failed", "INVALID_NAMESPACE"),
)


UNREGISTER_TRIGGER = FunctionSpec(
    "engine::unregister_trigger",
    "Withdraw a binding by its id, whoever made it.",
    UnregisterTriggerRequest,
    UnregisterTriggerResponse,
    INVALID,
    errors=("unregister_failed",),
)


FUNCTIONS = (
    TRIGGERS_LIST,
    TRIGGERS_INFO,
    REGISTERED_TRIGGERS_LIST,
    REGISTERED_TRIGGERS_INFO,
    REGISTER_TRIGGER,
    UNREGISTER_TRIGGER,
)
TRIGGERS: tuple[TriggerSpec, ...] = ()
