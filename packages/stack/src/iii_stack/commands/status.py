"""`iii-stack status`: the turn of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from iii_stack.errors import StackError
from iii_stack.output import AsJson, console, print_json
from iii_stack.reach import Reach, check_exists, with_bus

if TYPE_CHECKING:
    from iii_stack.asking import Asking


def status(
    session: Annotated[str, Parameter(help="Session id; see `iii-stack sessions`.")],
    /,
    *,
    reach: Reach = Reach(),
    verbose: Annotated[
        bool, Parameter(help="Add counters, waiting messages and the context.", negative=(), show_default=False)
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell what a session's current or last turn is at.

    Try:

        iii-stack status s_1

        iii-stack status s_1 --json --verbose
    """

    async def work(bus: Asking) -> dict[str, Any] | None:
        report = await bus.call("harness::status", {"session_id": session, "verbose": verbose})
        if report is None and not as_json:
            await check_exists(bus, session)
        return report

    report = with_bus(reach, work)
    if as_json:
        print_json(report)
        return
    if report is None:
        raise StackError("no_turn", f"session {session} never had a turn", hint="see `iii-stack sessions`")
    _print(report)


def _print(report: dict[str, Any]) -> None:
    from rich.text import Text

    out = console()
    out.print(Text(f"{report['status']}  turn {report['turn_id']}  step {report['step']}"))
    out.print(Text(f"generations {report['turn_count']} of {report['max_turns']}"))
    if report["pending_function_calls"]:
        out.print(Text("calls in flight: " + ", ".join(report["pending_function_calls"])))
    for name in ("stop_reason", "result_error", "result"):
        if report.get(name) is not None:
            out.print(Text(f"{name}: {report[name]}"))
    queued: list[dict[str, Any]] = report.get("queued") or []
    for waiting in queued:
        out.print(Text(f"waits: {waiting['entry_id']}"))
