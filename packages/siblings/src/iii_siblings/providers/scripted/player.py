"""Plays one step of a script into a stream (siblings 17.4)."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from iii_kit.encoding import encode
from iii_kit.world import Clock
from iii_siblings.providers.emitter import Emitter
from iii_siblings.providers.payload import credible_usage
from iii_siblings.providers.scripted.script import Action, Step, Wrapped

WRAPPER = "agent_trigger"
"""The one tool through which functions are called when they are not offered themselves."""

_WORD = re.compile(r"\s*\S+\s*|\s+")


class Player:
    """Plays the actions of one step."""

    def __init__(self, clock: Clock, emitter: Emitter, offered: set[str], step_index: int) -> None:
        self._clock = clock
        self._emitter = emitter
        self._offered = offered
        self._step_index = step_index
        self._calls = 0
        self._stop_reason: str | None = None

    async def play(self, step: Step, word_delay_s: float = 0) -> None:
        """Play all actions and end the answer, unless an action ends it in its own way."""
        await self._emitter.start()
        for action in step.emit:
            if not await self._act(action, word_delay_s):
                return
        reason = self._stop_reason or ("function_call" if self._calls else "end")
        await self._emitter.done(reason)

    async def _act(self, action: Action, word_delay_s: float) -> bool:
        """Play one action; False when it was the last."""
        emitter = self._emitter
        if action.text is not None:
            for word in _WORD.findall(action.text):
                await emitter.text(word)
                if word_delay_s:
                    await self._clock.sleep(word_delay_s)
        elif action.thinking is not None:
            for word in _WORD.findall(action.thinking):
                await emitter.thinking(word)
        elif action.call is not None:
            await self._call(action.call.id, *self._offered_form(action.call))
        elif action.native_call is not None:
            await self._call(action.native_call.id, action.native_call.function_id, action.native_call.arguments)
        elif action.usage is not None:
            await emitter.usage(credible_usage(action.usage))
        elif action.delay_ms is not None:
            await self._clock.sleep(action.delay_ms / 1000)
        elif action.ping:
            await emitter.ping()
        elif action.stop_reason is not None:
            self._stop_reason = action.stop_reason
        else:
            return await self._break(action)
        return True

    async def _break(self, action: Action) -> bool:
        if action.error is not None:
            await self._emitter.error(action.error.kind, action.error.message, action.error.retry_after_ms)
        elif action.hang:
            await asyncio.get_running_loop().create_future()
        return False

    def _offered_form(self, call: Wrapped) -> tuple[str, Any]:
        if call.function in self._offered and WRAPPER not in self._offered:
            return call.function, call.payload
        described = {} if call.description is None else {"description": call.description}
        return WRAPPER, {"function": call.function, **described, "payload": call.payload}

    async def _call(self, call_id: str | None, function_id: str, arguments: Any) -> None:
        self._calls += 1
        key = call_id or f"call_{self._step_index}_{self._calls}"
        await self._emitter.call(key, key, function_id)
        await self._emitter.arguments(key, encode(arguments).decode())
        await self._emitter.call_end(key, arguments)
