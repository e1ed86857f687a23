"""The configuration in force, read at boot and again when the entry changes (harness-loop 19).

A value that cannot be read or does not fit never replaces one that works. What is bound to a value (the sweep's timer,
the queue's concurrency) follows by `on_change` listeners.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from pydantic import ValidationError

from iii_contracts.harness import configuration
from iii_contracts.harness.configuration import HarnessConfig
from iii_contracts.harness.upkeep import ConfigChange
from iii_contracts.problems import describe, is_object
from iii_kit.bus import Invocation, Json
from iii_kit.clients.configuration import ConfigurationClient, Entry
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger

log = logger(__name__)

Listener = Callable[[HarnessConfig, HarnessConfig], Awaitable[None]]
"""Told the old and the new configuration after a reload that changed something."""

DESCRIPTION: Final = "Limits, time-outs and defaults of the turn loop."

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class BadConfig(ValueError):
    """A configuration that does not fit; the text names the field."""


class Settings:
    """Holds the configuration; also the `Limits` of the loop, each read anew."""

    def __init__(self, client: ConfigurationClient, initial: Mapping[str, Any] | None = None) -> None:
        self._client = client
        self._initial = configuration.defaults() if initial is None else dict(initial)
        self._listeners: list[Listener] = []
        self.value = HarnessConfig()

    def on_change(self, listener: Listener) -> None:
        """Tell `listener` of changes."""
        self._listeners.append(listener)

    async def boot(self) -> None:
        """Register and seed the entry, read what is stored. Raises `BusError`, or `BadConfig` naming the field."""
        stored = await self._client.seed(
            Entry(
                configuration.ENTRY_ID,
                configuration.ENTRY_NAME,
                DESCRIPTION,
                configuration.entry_schema(),
                self._initial,
            )
        )
        if retired(stored):
            log.warning("configuration_replaced", reason=f"it has keys of an old format: {', '.join(retired(stored))}")
            stored = configuration.defaults()
            await self._client.set(configuration.ENTRY_ID, stored)
        await self._use(parse(stored))

    async def changed(self, _: ConfigChange, __: Invocation) -> dict[str, Any]:
        """Handler of `harness::on-config-change`."""
        await self.reload()
        return {"ok": True}

    async def reload(self) -> None:
        """Read the entry anew; on any failure the value in force stays."""
        try:
            value = parse(await self._client.get(configuration.ENTRY_ID))
        except EpochEnded:
            raise
        except (BusError, BadConfig) as error:
            log.warning("configuration_kept", error=str(error))
            return
        await self._use(value)

    async def _use(self, value: HarnessConfig) -> None:
        before, self.value = self.value, value
        if value != before:
            for listener in self._listeners:
                await listener(before, value)

    @property
    def session_timeout_ms(self) -> int:
        """Wait for `session::*` and `state::*`."""
        return self.value.session_timeout_ms

    @property
    def context_timeout_ms(self) -> int:
        """Wait for `context::*`."""
        return self.value.context_timeout_ms

    @property
    def router_timeout_ms(self) -> int:
        """Wait for a generation."""
        return self.value.router_timeout_ms

    @property
    def dispatch_timeout_ms(self) -> int:
        """Wait for a called function."""
        return self.value.dispatch_timeout_ms

    @property
    def stream_coalesce_ms(self) -> int:
        """Least time between two stored partials."""
        return self.value.stream_coalesce_ms

    @property
    def max_result_bytes(self) -> int:
        """Size over which a result is omitted; 0 is off."""
        return self.value.max_result_bytes


def parse(value: Json) -> HarnessConfig:
    """A stored value as configuration; missing keys have their defaults. Raises `BadConfig` naming the field."""
    if value is None or retired(value):
        return HarnessConfig()
    try:
        return HarnessConfig.model_validate(value)
    except ValidationError as error:
        raise BadConfig(f"configuration entry `{configuration.ENTRY_ID}`: {describe(error)}") from error


def retired(value: Json) -> list[str]:
    """The keys of an old format that a stored value has."""
    return sorted(configuration.RETIRED_KEYS & cast("dict[str, Any]", value).keys()) if is_object(value) else []


def seed_of_yaml(text: str, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The seed that a `--config` file holds, `${NAME}` taken from the environment. Raises `BadConfig`."""
    import yaml  # only a process that was given a file needs it

    try:
        seed: Any = yaml.safe_load(_expanded(text, environment))
    except yaml.YAMLError as error:
        raise BadConfig(f"not YAML: {error}") from error
    if seed is None:
        return configuration.defaults()
    if not is_object(seed):
        raise BadConfig(f"expected a mapping of settings, got {type(seed).__name__}")
    if not retired(seed):
        parse(seed)
    return cast("dict[str, Any]", seed)


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    def value(reference: re.Match[str]) -> str:
        name = reference.group(1)
        if name not in environment:
            raise BadConfig(f"environment variable {name} is not set")
        return environment[name]

    return _REFERENCE.sub(value, text)
