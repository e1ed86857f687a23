"""The turn record: everything the loop must remember about a session's current turn (harness-loop 5).

Records are frozen: a decision makes a new one with `replace`, so a cached record can be shared. A row of the store
carries the version of its schema; a newer one is refused, since an older worker would drop what it does not know.

Versions: 1, the first.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast

import msgspec

from iii_contracts.messages import ThinkingLevel
from iii_kit.errors import CodedError

SCHEMA = 1
"""Version of the rows this code writes."""

TurnStatus: TypeAlias = Literal["running", "awaiting_functions", "completed", "cancelled", "failed"]
"""Where a turn stands; the last three are terminal."""

CallState: TypeAlias = Literal["triggered", "pending", "done"]
"""How far one call of a turn has come."""

TERMINAL: frozenset[str] = frozenset({"completed", "cancelled", "failed"})


class Row(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Base of what is stored: fields at their default are left out, unknown fields are ignored."""


class Policy(Row, frozen=True):
    """The function policy frozen on a turn; without one every call is denied."""

    allow: list[str] = []
    deny: list[str] = []
    expose: Literal["agent_trigger", "native"] = "agent_trigger"


class Output(Row, frozen=True, omit_defaults=False):
    """The output contract of a turn."""

    type: Literal["text", "json"] = "text"
    schema: Any = None


class AgentIdentity(Row, frozen=True):
    """The profile a session runs as."""

    id: str
    name: str | None = None
    icon: str | None = None
    color: str | None = None


class ResponseLanguage(Row, frozen=True):
    """The language pinned for a session."""

    code: str
    name: str


class Options(Row, frozen=True):
    """What a send fixes for its turn (5.2); frozen when the turn is seeded."""

    model: str
    provider: str | None = None
    system_prompt: str | None = None
    max_turns: int = 16
    max_output_tokens: int | None = None
    max_total_tokens: int | None = None
    max_cost_usd: float | None = None
    budget_root_session_id: str | None = None
    thinking_level: ThinkingLevel | None = None
    provider_options: dict[str, Any] | None = None
    output: Output = Output()
    functions: Policy | None = None
    metadata: Any = None
    agent: AgentIdentity | None = None
    preloaded_contracts: dict[str, Any] | None = None
    seeded_contracts: dict[str, Any] | None = None
    response_language: ResponseLanguage | None = None
    max_children: int | None = None
    max_validation_retries: int = 2
    max_transient_resumes: int = 1


class Checkpoint(Row, frozen=True):
    """How far one call has come (5.3)."""

    state: CallState
    function_id: str | None = None
    entry_id: str | None = None
    child_session_id: str | None = None
    child_turn_id: str | None = None
    child_session_reused: bool = False
    held_by: str | None = None
    held_arguments: Any = None
    reconciled: Any = None
    pending_timeout_ms: int | None = None
    pending_at: int | None = None


class Parent(Row, frozen=True):
    """The call of another session's turn that this turn works for."""

    session_id: str
    turn_id: str
    function_call_id: str


class Contract(Row, frozen=True):
    """A function contract that the model has seen, and where (9A.4)."""

    contract_digest: str
    source_function_call_id: str
    source_content_digest: str
    eligible: bool = False
    repeats: int = 0


class Failure(Row, frozen=True):
    """A call that failed, and how often in the same way (8.6)."""

    error_digest: str
    count: int


class Generation(Row, frozen=True):
    """Mark of a generation whose message is persisted (6.4)."""

    step: int
    stop_reason: str


class TurnRecord(Row, frozen=True):
    """One turn of a session (5.1)."""

    turn_id: str
    session_id: str
    status: TurnStatus
    options: Options
    created_at: int
    updated_at: int
    step: int = 0
    turn_count: int = 0
    depth: int = 0
    message_preview: str | None = None
    abort: bool = False
    watermark_entry_id: str | None = None
    stream_request_id: str | None = None
    generated: Generation | None = None
    calls: dict[str, Checkpoint] = {}
    parent: Parent | None = None
    display_parent_session_id: str | None = None
    functions_acknowledged: list[str] | None = None
    function_contract_ledger: dict[str, Contract] = {}
    failed_calls: dict[str, Failure] = {}
    context_snapshot: dict[str, Any] | None = None
    result: Any = None
    result_error: str | None = None
    stop_reason: str | None = None
    dispatch_only_functions: list[str] = []
    validation_retries: int = 0
    transient_resumes: int = 0

    @property
    def terminal(self) -> bool:
        """True when the turn is over."""
        return self.status in TERMINAL

    @property
    def request_id(self) -> str:
        """Id of this step's generation at the router."""
        return f"{self.turn_id}:{self.step}"


def to_row(record: TurnRecord) -> dict[str, Any]:
    """The JSON of a record, with its schema version."""
    row = cast("dict[str, Any]", msgspec.to_builtins(record))
    row["schema"] = SCHEMA
    return row


def from_row(row: Any) -> TurnRecord:
    """The record of a stored row. Raises `CodedError` `harness/state` for a newer version or an unreadable row."""
    version: Any = cast("dict[str, Any]", row).get("schema", SCHEMA) if isinstance(row, dict) else SCHEMA
    if not isinstance(version, int) or version > SCHEMA:
        raise CodedError(
            "harness/state",
            f"the turn record has schema version {version}, this worker reads up to {SCHEMA}; run the newer worker",
        )
    try:
        return msgspec.convert(_without_old_names(row), TurnRecord)
    except msgspec.ValidationError as error:
        raise CodedError("harness/state", f"the turn record cannot be read: {error}") from error


def _without_old_names(row: Any) -> Any:
    """Rows of old workers name the state `triggered` `dispatched`."""
    fields = cast("dict[str, Any]", row)
    calls: Any = fields.get("calls") if isinstance(row, dict) else None
    if not isinstance(calls, dict) or not any(_is_old(call) for call in cast("dict[str, Any]", calls).values()):
        return fields
    renamed = {
        key: {**call, "state": "triggered"} if _is_old(call) else call
        for key, call in cast("dict[str, Any]", calls).items()
    }
    return {**fields, "calls": renamed}


def _is_old(call: Any) -> bool:
    return isinstance(call, dict) and cast("dict[str, Any]", call).get("state") == "dispatched"
