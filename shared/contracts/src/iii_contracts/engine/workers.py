"""What the engine tells about workers, and their announcement (engine spec 9.6, 12.2, 12.5)."""

from typing import Any, Literal

from pydantic import Field

from iii_contracts.engine.functions import INVALID, FunctionSummary, NoConfig
from iii_contracts.engine.triggers import RegisteredTriggerSummary, TriggerTypeSummary
from iii_contracts.model import U32, U64, Wire
from iii_contracts.spec import FunctionSpec, TriggerSpec


class WorkersListRequest(Wire):
    """Filters of a listing of workers."""

    search: str | None = Field(default=None, description="Text inside the name, letter case ignored.")
    runtime: str | None = Field(default=None, description="Exact runtime, such as `python` or `engine`.")
    status: str | None = Field(default=None, description="Exact status, such as `connected` or `available`.")


class WorkerSummary(Wire):
    """One worker in a listing."""

    name: str | None = Field(description="Name it announced.")
    description: str | None = Field(description="What it is for.")
    version: str | None = Field(description="Version of its SDK.")
    id: str = Field(description="Id of its connection.")
    namespace: str = Field(description="Namespace it registers in.")
    runtime: str | None = Field(description="Language it runs in; `engine` inside the engine.")
    os: str | None = Field(description="Operating system it runs on.")
    status: str = Field(description="`connected`, or `available` inside the engine.")
    function_count: U64 = Field(description="Functions that it owns.")
    connected_at_ms: U64 = Field(description="When it connected.")
    active_invocations: U64 = Field(description="Open calls that it executes plus those it has made.")
    isolation: str | None = Field(description="How it is isolated.")
    ip_address: str | None = Field(description="Address it connected from.")


class WorkersListResponse(Wire):
    """A listing of workers, by name."""

    workers: list[WorkerSummary] = Field(description="The workers.")


class WorkersInfoRequest(Wire):
    """Which worker to describe."""

    name: str = Field(description="Name of the worker.")
    namespace: str | None = Field(default=None, description="Look only there.")


class WorkerDetail(WorkerSummary):
    """Everything about one worker."""

    pid: U32 | None = Field(default=None, description="Process id.")
    internal: bool = Field(description="True for a worker inside the engine.")


class WorkersInfoResponse(Wire):
    """A worker and what it has registered."""

    worker: WorkerDetail = Field(description="The worker.")
    functions: list[FunctionSummary] = Field(description="Its functions, hidden ones too.")
    trigger_types: list[TriggerTypeSummary] = Field(description="Types that it provides.")
    registered_triggers: list[RegisteredTriggerSummary] = Field(description="Bindings on its functions.")


class WorkersRegisterRequest(Wire):
    """The announcement of a worker."""

    runtime: str | None = Field(default=None, description="Language it runs in.")
    version: str | None = Field(default=None, description="Version of its SDK.")
    name: str | None = Field(default=None, description="Name it wants to hold; one live worker per namespace and name.")
    description: str | None = Field(default=None, description="What it is for.")
    os: str | None = Field(default=None, description="Operating system.")
    pid: U32 | None = Field(default=None, description="Process id; without it the worker is not listed.")
    isolation: str | None = Field(default=None, description="How it is isolated.")
    namespace: str | None = Field(default=None, description="Namespace of its registrations, fixed by the first call.")
    telemetry: dict[str, Any] | None = Field(default=None, description="Facts about its project.")


class WorkersRegisterResponse(Wire):
    """The announcement was taken."""

    success: bool = Field(description="True.")


class WorkerChanged(Wire):
    """A worker came, announced itself or left."""

    event: Literal["worker_connected", "worker_disconnected", "worker_metadata_updated"] = Field(
        description="What happened."
    )
    worker_id: str = Field(description="Id of the worker.")


WORKERS_LIST = FunctionSpec(
    "engine::workers::list",
    "List the connected workers and those inside the engine.",
    WorkersListRequest,
    WorkersListResponse,
    INVALID,
)


WORKERS_INFO = FunctionSpec(
    "engine::workers::info",
    "Describe one worker with its functions, trigger types and the bindings on its functions.",
    WorkersInfoRequest,
    WorkersInfoResponse,
    INVALID,
    errors=("NOT_FOUND",),
)


WORKERS_REGISTER = FunctionSpec(
    "engine::workers::register",
    "Announce the calling worker: take a name and a namespace and put its registrations in force.",
    WorkersRegisterRequest,
    WorkersRegisterResponse,
    INVALID,
    errors=("INVALID_NAMESPACE",),
)


WORKERS_AVAILABLE = TriggerSpec(
    "engine::workers-available",
    "Fires when a worker connects, announces itself or leaves.",
    NoConfig,
    WorkerChanged,
)


FUNCTIONS = (
    WORKERS_LIST,
    WORKERS_INFO,
    WORKERS_REGISTER,
)
TRIGGERS = (WORKERS_AVAILABLE,)
