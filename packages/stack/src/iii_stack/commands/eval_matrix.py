"""The matrix of a comparison as text that fits 80 columns: figures down, sessions across (eval 11.4, 12.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

UNKNOWN: Final = "—"

VALUE_WIDTH, DISTANCE_WIDTH = 7, 5
"""Five sessions fit 80 columns."""

UNITS: Final = ((1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"), (1e18, "E"))

Say = Callable[[float], str]


def print_matrix(out: Console, answer: dict[str, Any]) -> None:
    """Who is compared, then every figure of each with its distance from the reference."""
    letters = dict(zip((item["session"]["session_id"] for item in answer["sessions"]), "ABCDE", strict=False))
    reference = answer["baseline_session_id"]
    for item in answer["sessions"]:
        _print_session(out, letters[item["session"]["session_id"]], item, reference)
    out.print()
    out.print(matrix(answer, letters))
    if any(name_value is None for item in answer["sessions"] for name_value in _figures(item).values()):
        out.print(Text(f"{UNKNOWN} is unknown: nobody reported it, which is not zero.", style="dim"))


def matrix(answer: dict[str, Any], letters: dict[str, str]) -> Table:
    """The table: a column of figures for each session, and one of distances for all but the reference."""
    reference, items = answer["baseline_session_id"], answer["sessions"]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    for item in items:
        session_id = item["session"]["session_id"]
        table.add_column(letters[session_id], justify="right", no_wrap=True, min_width=VALUE_WIDTH)
        if session_id != reference:
            title = f"to {letters[reference]}"
            table.add_column(title, justify="right", no_wrap=True, style="dim", min_width=DISTANCE_WIDTH)
    for name in shown(items):
        label, say = ROWS[name]
        cells: list[str] = []
        for item in items:
            cells.append(_said(_figures(item)[name], say))
            if item["session"]["session_id"] != reference:
                cells.append(distance(item["deltas"][name]))
        table.add_row(label, *cells)
    return table


def shown(items: list[dict[str, Any]]) -> list[str]:
    """The figures with a row: where nobody knows a whole group, its first line says so for all of it."""
    rows: list[str] = []
    group_known = True
    for name, (label, _) in ROWS.items():
        known = any(_figures(item)[name] is not None for item in items)
        if not label.startswith(" "):
            rows.append(name)
            group_known = known or _members_known(name, items)
        elif group_known:
            rows.append(name)
    return rows


def _members_known(head: str, items: list[dict[str, Any]]) -> bool:
    names = list(ROWS)
    for name in names[names.index(head) + 1 :]:
        if not ROWS[name][0].startswith(" "):
            return False
        if any(_figures(item)[name] is not None for item in items):
            return True
    return False


def distance(delta: dict[str, float | None]) -> str:
    """How far a figure is from that of the reference, in at most five characters."""
    absolute, percent = delta["absolute"], delta["percent"]
    if absolute is None:
        return ""
    if absolute == 0:
        return "="
    if percent is None:
        return "new"
    if abs(percent) < 9.95:
        return f"{percent:+.1f}%"
    return f"{percent:+.0f}%" if percent < 999.5 else ">999%"


def count(value: float) -> str:
    """A number in at most six characters."""
    if value < 99_999.5:
        return f"{value:,.0f}"
    for size, unit in UNITS:
        scaled = value / size
        if scaled < 999.95:
            places = 3 if scaled < 9.9995 else 2 if scaled < 99.995 else 1
            return f"{scaled:.{places}f}{unit}"
    return f"{value:.0e}"


def money(value: float) -> str:
    """A price in at most seven characters."""
    if 0 < value < 0.00005:
        return "<$.0001"
    if value < 0.99995:
        return f"${value:.4f}"
    return f"${value:.2f}" if value < 999.995 else f"${count(value)}"


def mean(value: float) -> str:
    """A quotient of counts."""
    return f"{value:.1f}" if value < 999.95 else count(value)


def share(value: float) -> str:
    """A ratio as percent; it may exceed 100."""
    return f"{value * 100:.1f}%" if value < 10 else f"{count(value * 100)}%"


def duration(milliseconds: float) -> str:
    """A time that passed, in at most seven characters."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m" if hours < 100 else f"{count(hours // 24)}d"


ROWS: Final[dict[str, tuple[str, Say]]] = {
    "total_tokens": ("Tokens", count),
    "input_tokens": ("  input", count),
    "output_tokens": ("  output", count),
    "cache_read_tokens": ("  cache read", count),
    "cache_write_tokens": ("  cache write", count),
    "reasoning_tokens": ("  reasoning", count),
    "subject_cost_usd": ("Cost", money),
    "generations": ("Generations", count),
    "tokens_per_generation": ("  tokens each", mean),
    "cost_per_generation_usd": ("  cost each", money),
    "function_calls": ("Calls", count),
    "function_call_errors": ("  failed", count),
    "function_error_rate": ("  share failed", share),
    "sessions": ("Sessions", count),
    "descendants": ("  below root", count),
    "max_depth": ("  deepest", count),
    "compacted_sessions": ("  compacted", count),
    "context_total_tokens": ("Context", count),
    "context_usable_tokens": ("  usable", count),
    "context_free_tokens": ("  free", count),
    "context_occupancy": ("  share used", share),
    "trace_count": ("Traces", count),
    "span_count": ("  spans", count),
    "error_span_count": ("  failed spans", count),
    "trace_duration_ms": ("  duration", duration),
}
"""Every figure: its label, and how its values are said."""


def _figures(item: dict[str, Any]) -> dict[str, float | None]:
    return item.get("summary") or dict.fromkeys(ROWS)


def _said(value: float | None, say: Say) -> str:
    return UNKNOWN if value is None else say(value)


def _print_session(out: Console, letter: str, item: dict[str, Any], reference: str) -> None:
    session, lifecycle = item["session"], item["lifecycle"]
    told = [f"turn {lifecycle['turn_status'].replace('_', ' ')}" if "turn_status" in lifecycle else "no turn yet"]
    if session["session_id"] == reference:
        told.insert(0, "reference")
    if lifecycle.get("expects_wake"):
        told.append("expects a wake")
    if lifecycle["partial"]:
        told.append("figures may still change" if item.get("summary") else "figures unknown")
    style = "bold" if session["session_id"] == reference else ""
    title = " ".join(session.get("title", "").split())
    out.print(Text.assemble((letter, "bold"), "  ", (session["session_id"], style), "  ", " · ".join(told)))
    if title:
        out.print(Text(f"   {title}", style="dim"), no_wrap=True, overflow="ellipsis" if out.is_terminal else None)
    for error in item.get("errors", ()):
        out.print(Text(f"   {error}", style="yellow"))
