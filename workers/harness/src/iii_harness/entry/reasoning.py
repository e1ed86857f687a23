"""`options.reasoning: "lowest"`: the least effort that a model of the catalogue offers (harness-loop 3.1 step 9)."""

from __future__ import annotations

from typing import Any, cast, get_args

from msgspec.structs import replace

from iii_contracts.messages import ThinkingLevel
from iii_harness.errors import dependency, invalid_request
from iii_harness.record import Options
from iii_kit.bus import Caller
from iii_kit.clients.router import RouterClient
from iii_kit.errors import BusError, EpochEnded

LEVELS: frozenset[str] = frozenset(get_args(ThinkingLevel))


async def lowest(options: Options, bus: Caller) -> Options:
    """The options with the pair that the lowest effort comes to; "no effort" is an empty pair."""
    row = await _row(options, RouterClient(bus))
    if row is None:
        raise invalid_request(f'`options.reasoning`: "lowest" needs a catalogue entry, and `{options.model}` has none')
    effort = next((name for name in _efforts(row) if name != "none"), None)
    if effort is None:
        return replace(options, thinking_level="minimal" if row.get("supports_thinking") else None, provider_options={})
    level = cast("ThinkingLevel", effort.lower()) if effort.lower() in LEVELS else None
    return replace(options, thinking_level=level, provider_options={str(row["provider"]): {"reasoning_effort": effort}})


def ruling(options: Options) -> dict[str, Any]:
    """What the response reports: the level and the provider's effort that rule, as far as there are any."""
    report: dict[str, Any] = {}
    if options.thinking_level is not None:
        report["thinking_level"] = options.thinking_level
    for fields in (options.provider_options or {}).values():
        effort: Any = cast("dict[str, Any]", fields).get("reasoning_effort") if isinstance(fields, dict) else None
        if isinstance(effort, str):
            report["reasoning_effort"] = effort
            break
    return report


def _efforts(row: dict[str, Any]) -> list[str]:
    ladder: Any = row.get("reasoning_efforts")
    steps = cast("list[Any]", ladder) if isinstance(ladder, list) else []
    names = [cast("dict[str, Any]", step).get("effort") if isinstance(step, dict) else None for step in steps]
    return [name.strip() for name in names if isinstance(name, str) and name.strip()]


async def _row(options: Options, router: RouterClient) -> dict[str, Any] | None:
    try:
        if options.provider is not None:
            return await router.model(options.provider, options.model)
        return (await router.budget("", options.model)).get("model")
    except EpochEnded:
        raise
    except BusError as error:
        if error.code.startswith("router/") or "router/" in error.message:
            return None
        raise dependency("router::models", error) from error
