"""`iii-stack sessions`: the sessions there are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from iii_stack.output import AsJson, console, print_json, when
from iii_stack.reach import Reach
from iii_stack.reach import call as call_bus

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
    from rich.table import Table
    from rich.text import Text

    if not rows:
        console().print('no sessions yet; start one: iii-stack chat "What can you do here?"')
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("SESSION", "STATUS", "MESSAGES", "CHANGED", "TITLE"):
        table.add_column(heading, justify="right" if heading == "MESSAGES" else "left", no_wrap=heading != "TITLE")
    for row in rows:
        status = row["status"] + (f" ({row['status_reason']})" if row.get("status_reason") else "")
        table.add_row(row["session_id"], status, str(row["message_count"]), when(row["updated_at"]), Text(row["title"]))
    console().print(table)
