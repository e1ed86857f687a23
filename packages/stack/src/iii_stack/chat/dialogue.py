"""The interactive conversation: a prompt at the bottom, what happens above it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

from iii_kit.errors import BusError
from iii_stack.chat.conversation import Conversation
from iii_stack.chat.models import ModelChoice
from iii_stack.commands.chat import INTERRUPTED, STOP_S, summarise
from iii_stack.errors import of_bus
from iii_stack.output import console, print_error


async def converse(conversation: Conversation, model: ModelChoice | None, policy: dict[str, Any]) -> int:
    """Send every line; one that comes while a turn runs steers it. Returns the exit code of the last turn."""
    dialogue = Dialogue(conversation, model, policy)
    async with AsyncExitStack() as stack:
        if sys.stdin.isatty():
            from prompt_toolkit.patch_stdout import patch_stdout

            stack.enter_context(patch_stdout(raw=True))
        _greet(conversation, model)
        try:
            async for line in _typed(dialogue) if sys.stdin.isatty() else _piped():
                await dialogue.say(line)
        except KeyboardInterrupt:
            return INTERRUPTED
        return await dialogue.end()


class Dialogue:
    """The conversation and the task that follows its turn."""

    def __init__(self, conversation: Conversation, model: ModelChoice | None, policy: dict[str, Any]) -> None:
        self._conversation = conversation
        self._model = model
        self._policy = policy
        self._following: asyncio.Task[None] | None = None
        self._code = 0

    async def say(self, line: str) -> None:
        """Send one line, and see to it that its turn is followed."""
        if not line.strip():
            return
        try:
            answer = await self._conversation.send(line, self._model, self._policy)
        except BusError as error:
            print_error(of_bus(error), as_json=False)
            self._code = 1
            return
        if answer.get("merged"):
            console(stderr=True).print("(steers the running turn)", style="dim")
        if self._following is None or self._following.done():
            self._following = asyncio.create_task(self._follow())

    async def interrupt(self) -> bool:
        """Stop the turn that runs and wait for its end; False when none runs."""
        if self._following is None or self._following.done():
            return False
        await self._conversation.stop()
        await asyncio.wait({self._following}, timeout=STOP_S)
        self._code = INTERRUPTED
        return True

    async def end(self) -> int:
        """No more lines: wait for the turn that runs."""
        if self._following is not None:
            await self._following
        return self._code

    async def _follow(self) -> None:
        outcome = await self._conversation.finished()
        self._code = summarise(self._conversation, outcome)


def _greet(conversation: Conversation, model: ModelChoice | None) -> None:
    speaks = f"{model.provider}/{model.model}" if model else "the session's model"
    console(stderr=True).print(
        f"{speaks} in session {conversation.session_id}. Ctrl-D ends, Ctrl-C stops the agent.",
        style="dim",
        markup=False,
    )


async def _typed(dialogue: Dialogue) -> AsyncGenerator[str]:
    """Lines of the prompt. Ctrl-C stops the turn that runs; where none runs, it ends the conversation."""
    from prompt_toolkit import PromptSession

    prompt: PromptSession[str] = PromptSession("you> ")
    while True:
        try:
            yield await prompt.prompt_async()
        except EOFError:
            return
        except KeyboardInterrupt:
            if not await dialogue.interrupt():
                raise


async def _piped() -> AsyncGenerator[str]:
    while True:
        line = await asyncio.to_thread(sys.stdin.readline)
        if not line:
            return
        yield line.rstrip("\n")
