"""`iii-stack show`: a session and its transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from iii_stack.errors import StackError
from iii_stack.output import AsJson, console, print_json, when
from iii_stack.reach import Reach, with_bus

if TYPE_CHECKING:
    from iii_stack.asking import Asking

PAGE = 500


def show(
    session: Annotated[str, Parameter(help="Session id; see `iii-stack sessions`.")],
    /,
    *,
    reach: Reach = Reach(),
    as_json: AsJson = False,
) -> None:
    """Show a session: what was said, called and answered. With --json: `{session, entries}`.

    Try:

        iii-stack show s_1

        iii-stack show s_1 --json | jq '.entries[-1].message'
    """
    found = with_bus(reach, lambda bus: read(bus, session))
    if as_json:
        print_json(found)
    else:
        _print(found)


async def read(bus: Asking, session_id: str) -> dict[str, Any]:
    """The session and all entries of its active path. Raises `StackError` when it is unknown."""
    answer = await bus.call("session::get", {"session_id": session_id})
    if answer is None:
        raise StackError("session/not_found", f"no session {session_id}", hint="see `iii-stack sessions`")
    entries: list[dict[str, Any]] = []
    request: dict[str, Any] = {"session_id": session_id, "limit": PAGE, "include_custom": True}
    while True:
        page = await bus.call("session::messages", request)
        entries.extend(page["messages"])
        cursor = page.get("next_cursor")
        if cursor is None:
            return {"session": answer["meta"], "entries": entries}
        if cursor == request.get("cursor"):
            raise StackError("session/invalid_cursor", "the session store gave the same page twice")
        request["cursor"] = cursor


def _print(found: dict[str, Any]) -> None:
    from iii_stack.chat.entries import print_entry

    meta = found["session"]
    out = console()
    reason = f" ({meta['status_reason']})" if meta.get("status_reason") else ""
    out.print(f"{meta['session_id']}  {meta['status']}{reason}  {when(meta['updated_at'])}", style="bold", markup=False)
    for entry in found["entries"]:
        print_entry(out, entry)
