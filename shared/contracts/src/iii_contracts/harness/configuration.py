"""The configuration entry `harness` with its defaults (harness-loop 19). Unknown keys are refused."""

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field, WithJsonSchema

from iii_contracts.export import schema_of
from iii_contracts.model import U32, U64, Closed
from iii_contracts.policy import FunctionPolicy

ENTRY_ID: Final = "harness"
"""Id of the entry."""

ENTRY_NAME: Final = "Harness"
"""Name of the entry, as configuration pages show it."""

RETIRED_KEYS: Final = frozenset({"permissions", "providers"})
"""Keys of an old format: a stored value that has one is replaced by the defaults."""

CallReconciliation: TypeAlias = Literal["off", "coerce", "judge"]
"""How far arguments that do not fit the schema are repaired."""

_Concurrency = Annotated[
    int, Field(ge=1, le=256), WithJsonSchema({"type": "integer", "format": "uint32", "minimum": 1, "maximum": 256})
]

_Timeout = Annotated[
    int, Field(ge=1, le=2**64 - 1), WithJsonSchema({"type": "integer", "format": "uint64", "minimum": 1})
]
"""Milliseconds to wait. 0 would not mean "for ever": a client takes it for its own default (engine 21.5)."""


class ClosedPolicy(FunctionPolicy):
    """A function policy inside the entry: unknown keys are refused there too."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def _open_policy() -> ClosedPolicy:
    return ClosedPolicy(allow=["*"], deny=[], expose="agent_trigger")


class HarnessConfig(Closed):
    """What an operator may set. All keys apply from the next read; what a turn has frozen stays."""

    default_max_turns: U32 = Field(default=16, description="Generations a turn may use when the send names none.")
    default_pending_timeout_ms: _Timeout = Field(default=1_800_000, description="How long a deferred call may wait.")
    max_depth: U32 = Field(default=3, description="Levels of child sessions.")
    max_children: U32 = Field(default=8, description="Child sessions that one turn may create.")
    max_validation_retries: U32 = Field(default=2, description="Retries of an invalid JSON result.")
    max_transient_resumes: U32 = Field(default=1, description="Recoveries of a turn from a failed generation.")
    idem_ttl_secs: U64 = Field(default=86_400, description="How long an idempotency key is remembered.")
    session_timeout_ms: _Timeout = Field(default=10_000, description="Time-out of session and state calls.")
    context_timeout_ms: _Timeout = Field(default=320_000, description="Time-out of context assembly.")
    router_timeout_ms: _Timeout = Field(default=320_000, description="Time-out of a generation.")
    dispatch_timeout_ms: _Timeout = Field(default=300_000, description="Time-out of a function that the model calls.")
    stream_coalesce_ms: U64 = Field(default=150, description="Pause between two stored states of a streaming message.")
    max_result_bytes: U64 = Field(default=262_144, description="Largest result the model is given; 0 = no limit.")
    prompt_cache_sections: bool = Field(default=True, description="Tell providers which part of the prompt is stable.")
    call_reconciliation: CallReconciliation = Field(
        default="judge", description="How far arguments that do not fit the schema are repaired."
    )
    turn_concurrency: _Concurrency = Field(default=10, description="Sessions that run at the same time.")
    agent_post_turn_validators: bool = Field(default=False, description="Agents may bind harness::hook::post-turn.")
    sweep_expression: str = Field(
        default="0 * * * * *",
        description="When the sweep runs: six cron fields, seconds first.",
        pattern=r"^\s*(\S+\s+){5}\S+\s*$",
    )
    default_functions: ClosedPolicy | None = Field(
        default_factory=_open_policy,
        description="Policy of profile sends and parentless spawns without one, never of plain sends; null = deny all.",
    )
    default_filesystem_root: str | None = Field(
        default=None, description="Working directory of sessions; null = that of the process, `off` = none."
    )
    projects_file_path: str = Field(
        default="data/harness-projects.json", description="Where the project catalog is kept."
    )


def defaults() -> dict[str, Any]:
    """The default value of the entry, every key present."""
    return HarnessConfig().model_dump(mode="json")


def entry_schema() -> dict[str, Any]:
    """JSON Schema of the entry, with the defaults as `example`."""
    return {**schema_of(HarnessConfig, "validation"), "example": defaults()}
