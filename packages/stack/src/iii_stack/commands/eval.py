"""`iii-stack eval`: what the worker eval measures (eval 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import App, Parameter

from iii_kit.errors import BusError
from iii_stack.errors import StackError, WrongUsage, of_bus
from iii_stack.output import AsJson, console, print_json
from iii_stack.reach import Reach, with_bus

if TYPE_CHECKING:
    from iii_stack.asking import Asking

COMPARE: Final = "eval::compare-sessions"

FEWEST, MOST = 2, 5

TIMEOUT_MS: Final = 60_000
"""More than the reads of a comparison may take together."""

app = App(name="eval", help="Put sessions side by side by what they used.")


@app.command
def compare(
    sessions: Annotated[tuple[str, ...], Parameter(help="Root sessions, 2 to 5; see `iii-stack sessions`.")],
    /,
    *,
    baseline: Annotated[
        str | None, Parameter(help="The one to measure the others against. Left out: the first.", show_default=False)
    ] = None,
    reach: Reach = Reach(),
    as_json: AsJson = False,
) -> None:
    """Show what sessions used side by side, each figure with its distance from the reference.

    Sessions that still run are compared as they are. Nothing is stored, scored or ranked.

    Try:

        iii-stack eval compare s_1 s_2

        iii-stack eval compare s_1 s_2 s_3 --baseline s_2 --json
    """
    if not FEWEST <= len(sessions) <= MOST:
        message = f"name {FEWEST} to {MOST} sessions, not {len(sessions)}"
        raise WrongUsage("wrong_usage", message, hint="see `iii-stack sessions`")
    request = {"session_ids": list(sessions), "baseline_session_id": baseline or sessions[0]}
    answer = with_bus(reach, lambda bus: _compared(bus, request))
    if as_json:
        print_json(answer)
        return
    from iii_stack.commands.eval_matrix import print_matrix

    print_matrix(console(), answer)


async def _compared(bus: Asking, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return await bus.call(COMPARE, request, timeout_ms=TIMEOUT_MS)
    except BusError as error:
        raise _explained(error) from None


def _explained(error: BusError) -> StackError:
    """A failed comparison, with what to do about it."""
    if error.code == "function_not_found":
        hint = "start the stack without `--without eval`, or run `iii-eval --url URL` beside it"
        return StackError(error.code, "no worker on this bus compares sessions", hint=hint)
    found = of_bus(error)
    if error.matches("session not found"):
        found.hint = "see `iii-stack sessions`"
    elif error.matches("metadata.parent_session_id"):
        found.hint = "compare the session at the root of its tree; its figures include everything below"
    elif error.matches("dependency error"):
        found.hint = "see which part is missing with `iii-stack doctor`"
    return found
