"""The router as a worker of the bus: registers its functions and keeps its configuration (siblings 5, 6, 17.3)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from iii_contracts import registration as shapes
from iii_contracts import router as contract
from iii_kit.bus import Bus, Invocation, Json
from iii_kit.clients.configuration import ConfigurationClient
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger
from iii_kit.storage import Store
from iii_kit.world import World
from iii_siblings.router.catalogue import output_budget, supports
from iii_siblings.router.estimate import estimate
from iii_siblings.router.generations import Generations
from iii_siblings.router.providers import Providers
from iii_siblings.router.settings import ENTRY, ENTRY_ID, read_settings

RETRY_S = 2.0
"""Pause before a configuration that could not be read is asked for again."""

_log = logger(__name__)


def install(bus: Bus, world: World, store: Store, environ: Mapping[str, str] | None = None) -> Router:
    """Register the router on `bus`. `environ` is where keys of providers may lie; the process's by default."""
    return Router(bus, world, store, os.environ if environ is None else environ)


class Router:
    """The installed router."""

    def __init__(self, bus: Bus, world: World, store: Store, environ: Mapping[str, str]) -> None:
        self._bus = bus
        self._clock = world.clock
        self._providers = Providers(bus, world, store, environ)
        self._generations = Generations(bus, world, self._providers)
        self._configuration = ConfigurationClient(bus, world.clock)
        self._configured: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        generations = self._generations
        bus.serve(contract.CHAT, generations.chat)
        bus.serve(contract.COMPLETE, generations.complete)
        bus.serve(contract.ABORT, generations.abort)
        self._serve_catalogue()
        self._serve_registration()
        bus.bind("configuration", contract.ON_CONFIG_CHANGE.id, {"configuration_id": ENTRY_ID})
        bus.each_epoch(self._begin)

    async def ready(self) -> None:
        """Return when the configuration was read."""
        await asyncio.shield(self._configured)

    async def drain(self) -> None:
        """Take no more requests and end what streams."""
        await self._generations.drain()

    def _serve_catalogue(self) -> None:
        serve = self._bus.serve
        serve(contract.ROUTE, self._route)
        serve(contract.MODELS_LIST, self._models_list)
        serve(contract.MODELS_GET, self._models_get)
        serve(contract.MODELS_SUPPORTS, self._models_supports)
        serve(contract.MODELS_BUDGET, self._models_budget)
        serve(contract.COUNT_TOKENS, self._count_tokens)
        serve(contract.SYSTEM_PROMPT_GET, self._system_prompt_get)
        serve(contract.ON_CONFIG_CHANGE, self._on_config_change)

    def _serve_registration(self) -> None:
        serve = self._bus.serve
        serve(contract.MODELS_RECONCILE, self._reconcile)
        serve(contract.PROVIDER_LIST, self._provider_list)
        serve(contract.PROVIDER_REGISTER, self._register)
        serve(contract.PROVIDER_UNREGISTER, self._unregister)
        serve(contract.PROVIDER_RESOLVE, self._resolve)
        serve(contract.PROVIDER_UPDATE_CREDENTIAL, self._update_credential)
        serve(contract.PROVIDER_STATUS, self._status)

    async def _begin(self) -> None:
        """Read the configuration of this connection's engine; one that is not there yet is waited for."""
        while True:
            try:
                value = await self._configuration.seed(ENTRY)
                break
            except EpochEnded:
                raise
            except BusError as error:
                _log.warning("configuration_not_read", entry=ENTRY_ID, error=str(error))
            await self._clock.sleep(RETRY_S)
        self._take_settings(value)
        if not self._configured.done():
            self._configured.set_result(None)

    def _take_settings(self, value: Any) -> None:
        try:
            settings = read_settings(value)
        except msgspec.ValidationError as error:
            _log.warning("configuration_kept", entry=ENTRY_ID, problem=str(error))
            return
        if settings != self._providers.settings:
            self._providers.settings = settings
            self._providers.ready()

    async def _on_config_change(self, _: Any, __: Invocation) -> Json:
        try:
            self._take_settings(await self._configuration.get(ENTRY_ID))
        except BusError as error:
            _log.warning("configuration_not_read", entry=ENTRY_ID, code=error.code)
        return {"ok": True}

    async def _route(self, request: contract.RouteRequest, _: Invocation) -> Json:
        found = self._providers.route(request.model, request.provider)
        return {"provider": found.provider, "candidates": found.candidates}

    async def _models_list(self, request: contract.ModelsFilter, _: Invocation) -> Json:
        chosen = self._providers.catalogue.select(request.provider, request.capability, request.modality)
        return {"models": list(chosen)}

    async def _models_get(self, request: contract.ModelKey, _: Invocation) -> Json:
        model = self._providers.catalogue.get(request.provider, request.id)
        return None if model is None else {"model": model}

    async def _models_supports(self, request: contract.SupportsRequest, _: Invocation) -> Json:
        model = self._providers.catalogue.get(request.provider, request.id)
        return {"supported": supports(model, request.capability)}

    async def _models_budget(self, request: contract.BudgetRequest, _: Invocation) -> Json:
        providers = self._providers
        model = providers.catalogue.find(request.provider, request.id)
        provider = request.provider or (model or {}).get("provider", "")
        configured = None
        if provider in providers.registry:
            row = providers.registry.get(provider)
            configured = providers.configured_budget(row, providers.settings.provider(provider))
        ceiling = providers.settings.settings.output_token_max
        budget = output_budget(model, request.max_output_tokens, configured, ceiling)
        return {"model": model, "effective_max_output_tokens": budget}

    async def _count_tokens(self, request: contract.CountRequest, _: Invocation) -> Json:
        provider = request.provider or (self._listed(request.model) if request.model else None)
        fields = {"model": request.model, "provider": provider}
        answer: dict[str, Any] = {key: value for key, value in fields.items() if value is not None}
        messages: list[Any] = list(request.messages)
        tools = None if request.tools is None else [tool.model_dump(exclude_unset=True) for tool in request.tools]
        counted = {"messages": messages, "model": request.model, "system_prompt": request.system_prompt, "tools": tools}
        if provider is not None and provider in self._providers.registry and request.model:
            asked = {key: value for key, value in counted.items() if value is not None}
            try:
                tokens = (await self._bus.call(f"provider::{provider}::count_tokens", asked))["tokens"]
                return {**answer, "tokens": tokens, "estimator": "provider"}
            except BusError as error:
                _log.debug("tokens_estimated", provider=provider, code=error.code)
        return {**answer, "tokens": estimate(messages, request.system_prompt, tools), "estimator": "tiktoken"}

    def _listed(self, model: str) -> str | None:
        listed = self._providers.catalogue.providers_of(model)
        return listed[0] if len(listed) == 1 else None

    async def _system_prompt_get(self, request: shapes.SystemPromptRequest, _: Invocation) -> Json:
        providers = self._providers
        provider = request.provider or providers.settings.default_provider
        if provider is None:
            return {}
        prompt = providers.settings.provider(provider).system_prompt
        if prompt is None and provider in providers.registry:
            prompt = providers.registry.get(provider).registration.get("system_prompt")
        return {"provider": provider} | ({} if prompt is None else {"system_prompt": prompt})

    async def _reconcile(self, request: contract.ReconcileRequest, _: Invocation) -> Json:
        registry = self._providers.registry
        registry.authorize(request.provider, request.token)
        models = [model.model_dump(exclude_unset=True) for model in request.models]
        if await registry.reconcile(request.provider, models):
            self._providers.reconciled(request.provider)
        return {"provider": request.provider, "count": len(self._providers.catalogue.of(request.provider))}

    async def _provider_list(self, _: Any, __: Invocation) -> Json:
        return {"providers": self._providers.rows()}

    async def _register(self, request: shapes.RegisterRequest, _: Invocation) -> Json:
        providers = self._providers
        token = await providers.registry.register(request.model_dump(exclude_unset=True))
        if request.models is not None:
            models = [model.model_dump(exclude_unset=True) for model in request.models]
            if await providers.registry.reconcile(request.id, models):
                providers.reconciled(request.id)
        providers.changed(request.id, "register")
        return {"ok": True, "id": request.id, "registration_token": token}

    async def _unregister(self, request: shapes.ProviderKey, _: Invocation) -> Json:
        await self._providers.registry.unregister(request.id, request.token)
        self._providers.reconciled(request.id)
        return {"ok": True}

    async def _resolve(self, request: shapes.ProviderKey, _: Invocation) -> Json:
        providers = self._providers
        row = providers.registry.authorize(request.id, request.token)
        own = providers.settings.provider(request.id)
        source, credential = providers.registry.credential(row, own)
        answer: dict[str, Any] = {
            "configured": providers.registry.configured(row, own),
            "source": source,
            "credential": credential,
        }
        limits = {
            "api_url": own.api_url or row.defaults.get("api_url"),
            "max_tokens": providers.configured_budget(row, own),
        }
        return answer | {key: value for key, value in limits.items() if value is not None}

    async def _update_credential(self, request: shapes.UpdateCredentialRequest, _: Invocation) -> Json:
        self._providers.registry.authorize(request.id, request.token)
        given = request.credential.model_dump(exclude_unset=True)
        kept = {"api_key": given.get("key")} if given["type"] == "api_key" else {"credential": given}
        stored = await self._bus.call("configuration::get", {"id": ENTRY_ID, "raw": True})
        value: dict[str, Any] = dict(stored["value"] or {}) if stored else {}
        every: dict[str, Any] = dict(value.get("providers") or {})
        value["providers"] = every | {request.id: {**(every.get(request.id) or {}), **kept}}
        await self._configuration.set(ENTRY_ID, value)
        self._take_settings(await self._configuration.get(ENTRY_ID))
        return {"ok": True}

    async def _status(self, request: shapes.StatusRequest, _: Invocation) -> Json:
        registry = self._providers.registry
        row = registry.authorize(request.id, request.token)
        own = self._providers.settings.provider(request.id)
        before = registry.configured(row, own)
        report = registry.report(row, request.model_dump(exclude_unset=True))
        if registry.configured(row, own) != before:
            self._providers.changed(request.id, "register")
        return {"ok": True, "diagnostic": report}
