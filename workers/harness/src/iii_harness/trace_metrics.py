"""Traces of a tree of sessions, as far as the engine keeps any (harness-loop 15.2 step 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError

from iii_contracts.model import U64, Wire
from iii_harness.tree import Node
from iii_kit.bus import Caller
from iii_kit.errors import BusError, EpochEnded

GROUP_BY: Final = "engine::traces::group_by"
ALL: Final = 4_294_967_295
"""Limit that no number of groups reaches."""


class Group(Wire):
    """Spans of one session."""

    value: str
    trace_ids: list[str]
    span_count: U64
    error_count: U64
    first_seen_ms: U64
    last_seen_ms: U64
    duration_ms: U64


_groups: TypeAdapter[list[Group]] = TypeAdapter(list[Group], config=ConfigDict(defer_build=True))


async def traces(bus: Caller, nodes: Sequence[Node]) -> dict[str, Any] | None:
    """The traces of a tree; None when the engine has none to tell of."""
    request = {"attribute": "iii.session.id", "limit": ALL, "include_internal": True}
    try:
        answer = await bus.call(GROUP_BY, request)
        groups = _groups.validate_python(cast("dict[str, Any]", answer)["groups"])
    except EpochEnded:
        raise
    except (BusError, ValidationError, KeyError, TypeError):
        return None
    by_session = {group.value: group for group in groups}
    return counted([(node, by_session.get(node.session_id)) for node in nodes])


def counted(found: Sequence[tuple[Node, Group | None]]) -> dict[str, Any]:
    """The response's part of sessions and their groups."""
    groups = [group for _, group in found if group is not None]
    first = min((group.first_seen_ms for group in groups), default=0)
    last = max((group.last_seen_ms for group in groups), default=0)
    return {
        "trace_count": len({trace for group in groups for trace in group.trace_ids}),
        "span_count": sum(group.span_count for group in groups),
        "error_span_count": sum(group.error_count for group in groups),
        "duration_ms": last - first,
        "by_session": [{**node.place(), **_row(group)} for node, group in found],
    }


def _row(group: Group | None) -> dict[str, int]:
    if group is None:
        return {"trace_count": 0, "span_count": 0, "error_span_count": 0, "duration_ms": 0}
    return {
        "trace_count": len(set(group.trace_ids)),
        "span_count": group.span_count,
        "error_span_count": group.error_count,
        "duration_ms": group.duration_ms,
    }
