"""The options a send freezes for its turn: what is asked, inherited and defaulted (harness-loop 3.1 steps 5-9, 5.2;
harness-agents 2.5, 3.5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from iii_contracts.harness.configuration import HarnessConfig
from iii_contracts.harness.send import JsonOutput, SendOptions, SendRequest, SystemPromptStrategy
from iii_contracts.policy import FunctionPolicy
from iii_harness.entry.reasoning import lowest
from iii_harness.errors import invalid_request
from iii_harness.prompt.identity import names_prompt
from iii_harness.record import Options, Policy, TurnRecord
from iii_harness.working_directory import root_of
from iii_kit.bus import Caller

ResolvePrompt = Callable[[str | None, SystemPromptStrategy | None], Awaitable[str | None]]
"""The system prompt of a caller's text and strategy; None sends no prompt."""

_UNSERVED = ("agent", "skills", "max_total_tokens", "max_cost_usd")


def refuse_unserved(options: SendOptions) -> None:
    """Refuse by name what this version cannot do, so that nobody believes it was done."""
    for name in _UNSERVED:
        if getattr(options, name) is not None:
            raise invalid_request(f"`options.{name}` is not available in this version")
    if isinstance(options.output, JsonOutput):
        raise invalid_request("`options.output`: JSON output is not available in this version")


def check_external(request: SendRequest, prior: TurnRecord | None, metadata: dict[str, Any]) -> None:
    """A session that was brought in from elsewhere starts only with a model and a working directory of its own."""
    if prior is not None or not metadata.get("external_source"):
        return
    if request.model is None:
        raise invalid_request("`model` is required for the first message of a session from an external source")
    if request.options is None or root_of(request.options.metadata) is None:
        raise invalid_request(
            "`options.metadata.fs_scope.root` is required for the first message of a session from an external source"
        )


async def freeze(
    request: SendRequest,
    prior: TurnRecord | None,
    config: HarnessConfig,
    prompt: ResolvePrompt,
    bus: Caller,
) -> Options:
    """The options of the turn that this send would seed."""
    asked = request.options or SendOptions()
    model, provider = _model(request, prior)
    options = Options(
        model=model,
        provider=provider,
        max_turns=_or(asked.max_turns, config.default_max_turns),
        max_output_tokens=asked.max_output_tokens,
        functions=_policy(asked.functions, prior),
        metadata=asked.metadata,
        max_validation_retries=_or(asked.max_validation_retries, config.max_validation_retries),
        max_transient_resumes=config.max_transient_resumes,
        response_language=None if prior is None else prior.options.response_language,
    )
    options = await _with_prompt(options, asked, prior, prompt)
    return await _with_reasoning(options, asked, prior, bus)


def _model(request: SendRequest, prior: TurnRecord | None) -> tuple[str, str | None]:
    if request.model:
        return request.model, request.provider
    if prior is not None:
        return prior.options.model, request.provider or prior.options.provider
    if request.session_id is None:
        raise invalid_request("`model` is required: a new session has none to go on with")
    raise invalid_request(f"`model` is required: session `{request.session_id}` has no earlier turn to take it from")


def _policy(asked: FunctionPolicy | None, prior: TurnRecord | None) -> Policy | None:
    if asked is not None:
        return Policy(allow=asked.allow, deny=asked.deny, expose=asked.expose)
    return None if prior is None else prior.options.functions


async def _with_prompt(
    options: Options, asked: SendOptions, prior: TurnRecord | None, prompt: ResolvePrompt
) -> Options:
    """Naming a prompt field resolves it anew and drops the frozen identity; else a session keeps what it has."""
    if prior is None or names_prompt(asked):
        return replace(options, system_prompt=await prompt(asked.system_prompt, asked.system_prompt_strategy))
    kept = prior.options
    return replace(
        options,
        system_prompt=kept.system_prompt,
        agent=kept.agent,
        preloaded_contracts=kept.preloaded_contracts,
        seeded_contracts=kept.seeded_contracts,
    )


async def _with_reasoning(options: Options, asked: SendOptions, prior: TurnRecord | None, bus: Caller) -> Options:
    """Level and provider options travel as one pair: naming either replaces both, naming neither keeps both."""
    named = asked.thinking_level is not None or asked.provider_options is not None
    if asked.reasoning is not None:
        if named:
            raise invalid_request(
                "`options.reasoning` cannot be combined with `options.thinking_level` or `options.provider_options`"
            )
        return await lowest(options, bus)
    if named or prior is None:
        return replace(options, thinking_level=asked.thinking_level, provider_options=asked.provider_options)
    kept = prior.options
    return replace(options, thinking_level=kept.thinking_level, provider_options=kept.provider_options)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
