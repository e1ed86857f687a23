"""`iii-stack sessions`: the sessions there are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from iii_stack.chat.entries import short
from iii_stack.output import AsJson, console, print_json, when
from iii_stack.reach import Reach
from iii_stack.reach import call as call_bus

STATUS_WIDTH = 16
TITLE_WIDTH = 20
"""Columns that a title must have, before it is worth having others."""

Status = Literal["idle", "working", "done", "error"]


def sessions(
    *,
    reach: Reach = Reach(),
    status: Annotated[Status | None, Parameter(help="Only sessions with this status.")] = None,
    limit: Annotated[int, Parameter(help="How many, newest first.")] = 20,
    cursor: Annotated[str | None, Parameter(help="`next_cursor` of the page before.")] = None,
    as_json: AsJson = False,
) -> None:
    """List sessions, the last changed first.

    Try:

        iii-stack sessions

        iii-stack sessions --status error --json
    """
    request: dict[str, Any] = {"limit": limit}
    if status is not None:
        request["status"] = status
    if cursor is not None:
        request["cursor"] = cursor
    answer = call_bus(reach, "session::list", request)
    if as_json:
        print_json(answer)
        return
    _print_table(answer["sessions"])
    if answer.get("next_cursor"):
        console().print(f"more: iii-stack sessions --limit {limit} --cursor {answer['next_cursor']}", style="dim")


def _print_table(rows: list[dict[str, Any]]) -> None:
    """One line each, with the whole id; on a terminal the end of the title is cut."""
    from rich.text import Text

    out = console()
    if not rows:
        out.print('no sessions yet; start one: iii-stack chat "What can you do here?"')
        return
    table = fitted(rows, out.width if out.is_terminal else None)
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]) - 1)]
    for line in table:
        text = "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]])
        out.print(Text(text.rstrip()), no_wrap=True, overflow="ellipsis" if out.is_terminal else None)


def fitted(rows: list[dict[str, Any]], width: int | None) -> list[list[str]]:
    """The table with its heads. Where it is too narrow, the title is worth more than counts, times and reasons."""
    table = [["SESSION", "STATUS", "MESSAGES", "CHANGED", "TITLE"], *(_cells(row, reason=True) for row in rows)]
    if width is not None and _before_title(table) + TITLE_WIDTH > width:
        table = [table[0], *(_cells(row, reason=False) for row in rows)]
        for head in ("MESSAGES", "CHANGED"):
            if _before_title(table) + TITLE_WIDTH > width:
                column = table[0].index(head)
                table = [[*line[:column], *line[column + 1 :]] for line in table]
    return table


def _cells(row: dict[str, Any], *, reason: bool) -> list[str]:
    status = row["status"] + (f" ({row['status_reason']})" if reason and row.get("status_reason") else "")
    changed, title = when(row["updated_at"]), short(row["title"])
    return [row["session_id"], short(status, STATUS_WIDTH), str(row["message_count"]), changed, title]


def _before_title(table: list[list[str]]) -> int:
    return sum(max(len(line[column]) for line in table) + 2 for column in range(len(table[0]) - 1))
