"""A context manager that tests play: it keeps its contract (siblings 4) with a window as small as a test wants, and
compacts, overflows, fails, hangs or goes as it is told.

Whatever it does follows from the request alone, so an assembly that is made again gives the same answer.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from iii_contracts.context import ASSEMBLE, COUNT_TOKENS, AssembleRequest, CountRequest
from iii_kit.bus import Bus, Handle, Invocation
from iii_kit.errors import CodedError

ROLES = ("user", "assistant", "function_result", "custom")


def tokens(value: Any) -> int:
    """The estimate of siblings 4.3."""
    return len(json.dumps(value)) // 4


class PlayedContext:
    """Serves `context::assemble` and `context::count-tokens`."""

    def __init__(self, usable: int = 100_000) -> None:
        self.usable = usable
        self.ceiling = 4_096
        self.asked: list[dict[str, Any]] = []
        self.counted: list[dict[str, Any]] = []
        self.before: Callable[[AssembleRequest], Awaitable[None]] | None = None
        """Runs before an answer: raise to fail, wait to hang."""
        self.change: Callable[[dict[str, Any]], Any] = lambda answer: answer
        """What becomes of a right answer."""
        self.told: list[int] = []
        """For tests: how often it had been asked when something happened."""
        self.squeezes: Callable[[AssembleRequest], bool] = lambda _: False
        """Compact this request although it fits."""
        self._served: list[Handle] = []

    def serve(self, bus: Bus) -> None:
        """Come."""
        self._served = [bus.serve(ASSEMBLE, self._assemble), bus.serve(COUNT_TOKENS, self._count)]

    def leave(self) -> None:
        """Go."""
        for handle in self._served:
            handle.close()

    async def _assemble(self, request: AssembleRequest, _: Invocation) -> Any:
        self.asked.append(request.model_dump(exclude_unset=True, warnings=False))
        if self.before is not None:
            await self.before(request)
        return self.change(self._answer(request))

    def _answer(self, request: AssembleRequest) -> dict[str, Any]:
        options = request.options
        assert options is not None
        overhead = options.request_overhead_tokens or 0
        tools = [tool.model_dump(exclude_unset=True) for tool in request.tools or ()]
        messages: list[Any] = [m for m in request.messages if m["role"] != "custom"]  # type: ignore[index]
        applied: dict[str, Any] = {"compacted": False}
        summary = options.previous_summary
        prompt = prompt_of(request.system_prompt, summary)
        count = tokens_of(messages, prompt, tools) + overhead
        applied["initial_token_count"] = before = count
        if (count > self.usable or self.squeezes(request)) and options.allow_compaction:
            start = max(i for i, m in enumerate(messages) if m["role"] == "user")
            if start > 0:
                replies = sum(m["role"] == "assistant" for m in messages[:start])
                summary = f"{summary or 'summary'}, {start} more ({replies} replies)"
                applied.update(compacted=True, summary=summary, tail_start_index=start, tokens_before=before)
                applied["summarized_head_tokens"] = tokens(messages[:start])
                messages, prompt = messages[start:], prompt_of(request.system_prompt, summary)
                count = tokens_of(messages, prompt, tools) + overhead
        if count > self.usable:
            raise CodedError("context/overflow", f"{count} tokens, {self.usable} usable")
        return {
            "system_prompt": prompt,
            "messages": messages,
            "token_count": count,
            "usable": self.usable,
            "effective_max_output_tokens": self.ceiling,
            "model_resolved": "router",
            "applied": applied,
            "breakdown": {
                "system_prompt_tokens": tokens(prompt),
                "tools_tokens": tokens(tools),
                "by_role": {role: tokens_of([m for m in messages if m["role"] == role]) for role in ROLES},
                "estimator": "heuristic",
            },
        }

    async def _count(self, request: CountRequest, _: Invocation) -> Any:
        self.counted.append(request.model_dump(exclude_unset=True, warnings=False))
        tools = [tool.model_dump(exclude_unset=True) for tool in request.tools or ()]
        return {"tokens": tokens_of(request.messages, request.system_prompt or "", tools), "estimator": "heuristic"}


def prompt_of(base: str | None, summary: str | None) -> str:
    """The prompt with the summary behind it."""
    told = (base or "").strip()
    return told if summary is None else f"{told}\n\n# Conversation summary\n\n{summary}"


def tokens_of(messages: list[Any], prompt: str = "", tools: list[Any] | None = None) -> int:
    """The size of a request as the breakdown adds it up."""
    by_role = [tokens([m]) for m in messages]
    return sum(by_role) + (tokens(prompt) if prompt else 0) + (tokens(tools) if tools else 0)


def replies_so_far(request: dict[str, Any]) -> int:
    """How many assistant messages a model's request shows or tells of in its summary."""
    told = re.findall(r"\((\d+) replies\)", request.get("system_prompt", ""))
    return sum(map(int, told)) + sum(m["role"] == "assistant" for m in request["messages"])


async def never(_: AssembleRequest) -> None:
    """Hang."""
    await asyncio.Event().wait()


__all__ = ["PlayedContext", "never", "replies_so_far", "tokens"]
