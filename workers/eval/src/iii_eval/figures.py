"""Every figure of a comparison (eval 11.4, 11.5): pure, without I/O. None is unknown and never zero.

Counts are integers. Quotients and distances are floats; one that no JSON number can carry is unknown.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from iii_contracts.eval.comparison import ObjectiveSummaryV1
from iii_contracts.session_metrics import ContextSnapshotV1, SessionMetricsResponseV1

Figure: TypeAlias = "int | float | None"
Summary: TypeAlias = dict[str, Figure]
Delta: TypeAlias = dict[str, "float | None"]

FIGURES: Final = tuple(ObjectiveSummaryV1.model_fields)
"""The names of all figures, in their order."""

MOST: Final = 2**64 - 1
"""Where sums saturate."""


def summary(metrics: SessionMetricsResponseV1) -> Summary:
    """The figures of one tree of sessions."""
    found = {**_usage(metrics), **_traces(metrics), **_tree(metrics), **_context(metrics)}
    return {name: found[name] for name in FIGURES}


def deltas(figures: Summary | None, baseline: Summary | None) -> dict[str, Delta]:
    """Each figure against that of the baseline; all unknown where one side has no figures."""
    mine, other = figures or {}, baseline or {}
    return {name: delta(mine.get(name), other.get(name)) for name in FIGURES}


def delta(value: Figure, baseline: Figure) -> Delta:
    """One figure against that of the baseline."""
    if value is None or baseline is None:
        return {"absolute": None, "percent": None}
    absolute = _number(float(value - baseline))
    percent = None if absolute is None or baseline == 0 else _number(absolute / baseline * 100)
    return {"absolute": absolute, "percent": percent}


def _usage(metrics: SessionMetricsResponseV1) -> Summary:
    totals = metrics.totals
    tokens = _sum(totals.input_tokens, totals.output_tokens)
    return {
        "total_tokens": tokens,
        "input_tokens": totals.input_tokens,
        "output_tokens": totals.output_tokens,
        "cache_read_tokens": totals.cache_read_tokens,
        "cache_write_tokens": totals.cache_write_tokens,
        "reasoning_tokens": totals.reasoning_tokens,
        "subject_cost_usd": totals.cost_usd,
        "generations": totals.turns,
        "tokens_per_generation": _quotient(tokens, totals.turns),
        "cost_per_generation_usd": _quotient(totals.cost_usd, totals.turns),
        "function_calls": totals.function_calls,
        "function_call_errors": totals.function_call_errors,
        "function_error_rate": _quotient(totals.function_call_errors, totals.function_calls),
    }


def _traces(metrics: SessionMetricsResponseV1) -> Summary:
    traces = metrics.traces
    return {
        "trace_count": traces and traces.trace_count,
        "span_count": traces and traces.span_count,
        "error_span_count": traces and traces.error_span_count,
        "trace_duration_ms": traces and traces.duration_ms,
    }


def _tree(metrics: SessionMetricsResponseV1) -> Summary:
    rows = metrics.by_session
    compacted = [row.context.compacted for row in rows if row.context is not None]
    return {
        "sessions": metrics.totals.sessions,
        "descendants": max(0, metrics.totals.sessions - 1),
        "max_depth": max((row.depth for row in rows), default=None),
        "compacted_sessions": sum(compacted) if compacted else None,
    }


def _context(metrics: SessionMetricsResponseV1) -> Summary:
    root = _root_context(metrics)
    return {
        "context_total_tokens": root and root.total,
        "context_usable_tokens": root and root.usable,
        "context_free_tokens": root and root.free,
        "context_occupancy": root and _quotient(root.total, root.usable),
    }


def _root_context(metrics: SessionMetricsResponseV1) -> ContextSnapshotV1 | None:
    rows = (row for row in metrics.by_session if row.session_id == metrics.root_session_id)
    row = next(rows, None)
    return None if row is None else row.context


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else min(left + right, MOST)


def _quotient(value: Figure, by: int) -> float | None:
    return None if value is None or by == 0 else _number(value / by)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
