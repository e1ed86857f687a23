"""The identity prompt: one for every agent, stored in the directory or embedded here (harness-agents 3.2, 3.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, cast

from iii_contracts.harness.send import SendOptions, SystemPromptStrategy
from iii_harness.catalog import Snapshot
from iii_kit.bus import Caller, Opts
from iii_kit.errors import BusError, EpochEnded

STORED: Final = "directory::system-prompts::get"
"""Function that reads an operator's own identity prompt."""

TIMEOUT_MS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity prompt in force, and whether an operator stored it."""

    text: str
    stored: bool = False


@cache
def embedded() -> Identity:
    """The prompt that ships with the worker."""
    return Identity(files("iii_harness").joinpath("prompts", "default.txt").read_text("utf-8"))


async def identity(bus: Caller, snapshot: Snapshot) -> Identity:
    """The identity prompt for a new composition. Whatever goes wrong with a stored one, the embedded one is used."""
    if not snapshot.has(STORED):
        return embedded()
    try:
        answer = await bus.call(STORED, {"name": "default"}, opts=Opts(timeout_ms=TIMEOUT_MS))
    except EpochEnded:
        raise
    except BusError:
        return embedded()
    body: Any = cast("dict[str, Any]", answer).get("body") if isinstance(answer, dict) else None
    return Identity(body, stored=True) if isinstance(body, str) and body.strip() else embedded()


def names_prompt(options: SendOptions | None) -> bool:
    """True when a send resolves the prompt anew; else a session with a turn keeps what that turn resolved (3.5)."""
    return options is not None and not (options.system_prompt is None and options.system_prompt_strategy is None)


def resolve(identity_text: str, text: str | None, strategy: SystemPromptStrategy | None) -> str | None:
    """The base prompt that a send's two prompt fields come to (3.3); None sends no prompt."""
    if strategy == "disabled":
        return None
    if not text:
        return identity_text
    if strategy == "override":
        return text
    return joined(identity_text, text)


def joined(*parts: str | None) -> str:
    """Parts of a prompt with a blank line between them; ends of lines at their ends go, absent and empty ones too."""
    trimmed = (part.rstrip("\r\n") for part in parts if part)
    return "\n\n".join(part for part in trimmed if part)


class PromptResolver:
    """Resolves the prompt fields of a send; reads the identity prompt only when it is part of the answer."""

    def __init__(self, bus: Caller, snapshot: Callable[[], Snapshot]) -> None:
        self._bus = bus
        self._snapshot = snapshot

    async def __call__(self, text: str | None, strategy: SystemPromptStrategy | None) -> str | None:
        """The base prompt of a new composition; None sends no prompt."""
        if strategy == "disabled" or (strategy == "override" and text):
            return resolve("", text, strategy)
        return resolve((await identity(self._bus, self._snapshot())).text, text, strategy)
