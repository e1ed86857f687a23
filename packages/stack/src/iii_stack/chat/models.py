"""Which model a chat talks to."""

from __future__ import annotations

from typing import NamedTuple

from iii_kit.bus import Caller
from iii_stack.errors import StackError

DEMO_PROVIDER = "scripted"
DEMO_MODEL = "demo"


class ModelChoice(NamedTuple):
    """A provider and its model."""

    provider: str
    model: str


def parse_model(text: str) -> ModelChoice:
    """`PROVIDER/MODEL`, split at the first slash. Raises `StackError`."""
    provider, slash, model = text.partition("/")
    if not (provider and slash and model):
        raise StackError(
            "invalid_model",
            f"--model {text}: not PROVIDER/MODEL",
            hint="such as openai/gpt-5-mini; `iii-stack doctor` lists them",
        )
    return ModelChoice(provider, model)


async def default_model(bus: Caller) -> ModelChoice:
    """The first model of a provider that has what it needs; without one, the demonstration."""
    providers = (await bus.call("router::provider::list", {}))["providers"]
    usable = {row["id"] for row in providers if row["configured"] and row["id"] != DEMO_PROVIDER}
    for row in (await bus.call("router::models::list", {}))["models"]:
        if row["provider"] in usable:
            return ModelChoice(row["provider"], row["id"])
    return ModelChoice(DEMO_PROVIDER, DEMO_MODEL)


async def check_model(bus: Caller, choice: ModelChoice) -> None:
    """Raises `StackError` when the model cannot answer, before there is a session. The list of models may be behind."""
    providers = {row["id"]: row for row in (await bus.call("router::provider::list", {}))["providers"]}
    row = providers.get(choice.provider)
    if row is None:
        known = ", ".join(sorted(providers)) or "none"
        raise StackError("unknown_provider", f"no provider {choice.provider} is registered", hint=f"one of: {known}")
    if not row["configured"]:
        variable = f"{choice.provider.upper().replace('-', '_')}_API_KEY"
        raise StackError(
            "not_configured",
            f"provider {choice.provider} has no key",
            hint=f"set {variable} where the stack is started; `iii-stack doctor` tells which providers have one",
        )
