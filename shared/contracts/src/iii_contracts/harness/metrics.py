"""`harness::session-tree` and `harness::metrics` (harness-loop 15).

Readers in other workers know the response by `iii_contracts.session_metrics`.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from iii_contracts import session_metrics
from iii_contracts.harness import codes
from iii_contracts.harness.context import ContextSnapshotV1
from iii_contracts.model import F64, U32, U64, Closed, Wire
from iii_contracts.spec import FunctionSpec


class SessionTreeRequest(Wire):
    """Where the tree begins."""

    root_session_id: str = Field(description="Root of the tree.")


class SessionTreeNodeV1(Closed):
    """One session of a tree."""

    session_id: str = Field(description="The session.")
    parent_session_id: str | None = Field(default=None, description="Session above it; absent at the root.")
    parent_turn_id: str | None = Field(default=None, description="Turn that made it, when known.")
    depth: U32 = Field(description="Levels below the root.")


class SessionTreeResponseV1(Closed):
    """A session and everything below it."""

    root_session_id: str = Field(description="Root that was asked for.")
    sessions: list[SessionTreeNodeV1] = Field(description="Sessions by depth, then id; the root first.")
    complete: bool = Field(description="False when the root is unknown or a link was contradictory.")


def _exactly_one(schema: dict[str, Any]) -> None:
    names = ("root_session_id", "session_id")
    for name in names:
        schema["properties"][name].pop("default", None)
    schema["oneOf"] = [{"required": [name]} for name in names]


class MetricsRequest(Wire):
    """Any session of the tree, by exactly one of the two names."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, json_schema_extra=_exactly_one)

    root_session_id: str = Field(default=cast("str", None), description="Root of the tree, or a session in it.")
    session_id: str = Field(default=cast("str", None), description="A session in the tree.")

    @model_validator(mode="after")
    def _names_one(self) -> MetricsRequest:
        if len(self.model_fields_set) != 1:
            raise PydanticCustomError("exactly_one", "exactly one of `root_session_id` and `session_id` must be given")
        return self

    @property
    def any_session_id(self) -> str:
        """The id that was given."""
        return self.root_session_id if "root_session_id" in self.model_fields_set else self.session_id


class Counters(session_metrics.Counters):
    """The six counters of generations, every one of them present: null when unknown, which is not zero."""

    input_tokens: U64 | None = Field(description="Input tokens without those of the cache.")
    output_tokens: U64 | None = Field(description="Output tokens.")
    cache_read_tokens: U64 | None = Field(description="Input tokens read from the provider's cache.")
    cache_write_tokens: U64 | None = Field(description="Input tokens written to it.")
    reasoning_tokens: U64 | None = Field(description="Output tokens spent on reasoning.")
    cost_usd: F64 | None = Field(description="Cost in US dollars.")


class SessionUsageTotalsV1(Counters, session_metrics.SessionUsageTotalsV1):
    """Usage of a whole tree."""


class SessionUsageV1(Counters, session_metrics.SessionUsageV1):
    """Usage of one session."""

    # Narrower than what readers rely on, here and below, which is sound: models are frozen.
    context: ContextSnapshotV1 | None = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default=None, description="What its last request was made of."
    )


class SessionMetricsResponseV1(session_metrics.SessionMetricsResponseV1):
    """What a tree of sessions used."""

    totals: SessionUsageTotalsV1 = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        description="Sums over all generations of the tree."
    )
    by_session: list[SessionUsageV1] = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        description="Usage by session, in the tree's order."
    )


SESSION_TREE = FunctionSpec(
    "harness::session-tree",
    "List a session and all its descendants.",
    SessionTreeRequest,
    SessionTreeResponseV1,
    codes.INVALID_REQUEST,
    errors=(codes.DEPENDENCY,),
)

METRICS = FunctionSpec(
    "harness::metrics",
    "Tokens, cost, generations, calls and errors of a whole session tree, live or finished, and its traces.",
    MetricsRequest,
    SessionMetricsResponseV1,
    codes.INVALID_REQUEST,
    errors=(codes.DEPENDENCY, codes.STATE),
)

FUNCTIONS = (SESSION_TREE, METRICS)
