"""`iii-stack chat`: talk to an agent, and watch what it does."""

from __future__ import annotations

import asyncio
import signal
import sys
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from iii_stack.errors import StackError
from iii_stack.output import console
from iii_stack.reach import Reach, check_exists, connected

if TYPE_CHECKING:
    from iii_stack.chat.conversation import Conversation
    from iii_stack.chat.models import ModelChoice

INTERRUPTED = 130
STOP_S = 15.0
"""How long an interrupted chat waits for its turn to end."""


def chat(
    message: Annotated[str | None, Parameter(help="What to say. Left out: an interactive conversation.")] = None,
    /,
    *,
    reach: Reach = Reach(),
    model: Annotated[str | None, Parameter(help="PROVIDER/MODEL; the first configured one when left out.")] = None,
    session: Annotated[str | None, Parameter(help="Continue this session.")] = None,
    allow: Annotated[
        tuple[str, ...], Parameter(help="Also let the agent call these functions.", negative=(), show_default=False)
    ] = (),
    deny: Annotated[
        tuple[str, ...], Parameter(help="Never let the agent call these functions.", negative=(), show_default=False)
    ] = (),
) -> int:
    """Say something to an agent and watch its answer, its calls and their results.

    The answer goes to stdout, calls and notes to stderr. In a conversation, a line sent while the agent works steers
    it; Ctrl-D ends the conversation. Ctrl-C stops the agent, and where it does nothing, the conversation.

    The agent may call what workers offer, and look around in the engine; --allow and --deny change that, with ids or
    their beginnings ('session::*').

    Try:

        iii-stack chat "What can you do here?"

        iii-stack chat --model openai/gpt-5-mini --deny 'shell::*'

        iii-stack chat --session s_1 "And then?"
    """
    from iii_stack.chat.models import parse_model
    from iii_stack.chat.policy import chat_policy

    policy = chat_policy(allow, deny)
    chosen = None if model is None else parse_model(model)
    if message is not None and not message.strip():
        raise StackError("empty_message", "the message is empty", hint="say something, or leave it out to converse")
    return asyncio.run(_chat(reach, message, chosen, session, policy))


async def _chat(
    reach: Reach, message: str | None, model: ModelChoice | None, session_id: str | None, policy: dict[str, Any]
) -> int:
    async with connected(reach) as bus:
        from iii_stack.chat.conversation import Conversation
        from iii_stack.chat.models import check_model, default_model
        from iii_stack.chat.view import ChatView

        if session_id is not None:
            await check_exists(bus, session_id)
        elif model is None:
            model = await default_model(bus)
        if model is not None:
            await check_model(bus, model)
        view = ChatView(_writer(conversing=message is None), console(stderr=True))
        conversation = Conversation(bus, session_id or f"s_{uuid.uuid4()}", view)
        await conversation.begin(existing=session_id is not None)
        if message is None:
            from iii_stack.chat.dialogue import converse

            return await converse(conversation, model, policy)
        await conversation.send(message, model, policy)
        return await follow(conversation)


async def follow(conversation: Conversation) -> int:
    """Show the turn until it has ended; Ctrl-C stops it. Returns the exit code."""
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupted.set)
    finished = asyncio.ensure_future(conversation.finished())
    stopping = asyncio.ensure_future(interrupted.wait())
    try:
        await asyncio.wait({finished, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if finished.done():
            return summarise(conversation, finished.result())
        await conversation.stop()
        await asyncio.wait({finished}, timeout=STOP_S)
        conversation.view.end_line()
        console(stderr=True).print("stopped", style="yellow")
        return INTERRUPTED
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        for task in (finished, stopping):
            task.cancel()


def summarise(conversation: Conversation, outcome: dict[str, Any]) -> int:
    """Tell how the turn ended; returns the exit code."""
    from rich.text import Text

    out = console(stderr=True)
    calls = conversation.view.calls
    told = f"session {conversation.session_id}" + (f", {calls} call{'s' * (calls != 1)}" if calls else "")
    status = outcome["status"]
    if status == "completed":
        out.print(Text(told, style="dim"))
        return 0
    reason = outcome.get("reason") or outcome.get("result_error")
    if reason is None and status == "cancelled":
        out.print(Text("turn cancelled", style="yellow"))
    elif reason is not None and conversation.view.has_told(str(reason)):
        out.print(Text(f"turn {status}", style="bold red"))
    else:
        out.print(Text.assemble((f"turn {status}: ", "bold red"), str(reason or "no reason given")))
    out.print(Text(f"{told}; see `iii-stack show {conversation.session_id}`", style="dim"))
    return 1


def _writer(*, conversing: bool) -> Callable[[str], None]:
    """How the answer is written: at once, but in whole lines above the prompt of a conversation."""
    if not (conversing and sys.stdin.isatty()):
        return _write
    import shutil

    from iii_stack.chat.lines import Lines

    return Lines(_write, lambda: shutil.get_terminal_size().columns)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
