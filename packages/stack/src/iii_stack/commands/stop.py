"""`iii-stack stop`: end a running turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from iii_stack.output import AsJson, console, print_json
from iii_stack.reach import Reach, check_exists, with_bus

if TYPE_CHECKING:
    from iii_stack.asking import Asking


def stop(
    session: Annotated[str, Parameter(help="Session id; see `iii-stack sessions`.")],
    /,
    *,
    reach: Reach = Reach(),
    turn: Annotated[str | None, Parameter(help="Only when this is the session's turn.")] = None,
    as_json: AsJson = False,
) -> None:
    """Stop the running turn of a session. What it wrote stays.

    Try:

        iii-stack stop s_1
    """
    request = {"session_id": session} | ({} if turn is None else {"turn_id": turn})

    async def work(bus: Asking) -> dict[str, Any]:
        answer = await bus.call("harness::stop", request)
        if not answer["stopping"]:
            await check_exists(bus, session)
        return answer

    answer = with_bus(reach, work)
    if as_json:
        print_json(answer)
    else:
        console().print("stopping" if answer["stopping"] else f"nothing runs in {session}", markup=False)
