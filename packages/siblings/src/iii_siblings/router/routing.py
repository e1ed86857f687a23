"""Which provider serves a model (siblings 5.3): a pure decision over catalogue, providers and settings."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from iii_contracts.router import AMBIGUOUS, NO_PROVIDER, UNKNOWN_PROVIDER
from iii_kit.errors import CodedError
from iii_siblings.router.catalogue import Catalogue
from iii_siblings.router.registry import ProviderRegistry
from iii_siblings.router.settings import RouterSettings


@dataclass(frozen=True, slots=True)
class Route:
    """The provider of a model, and the providers that list it."""

    provider: str
    candidates: list[str]


def route(
    model: str, asked: str | None, catalogue: Catalogue, providers: ProviderRegistry, settings: RouterSettings
) -> Route:
    """The route of `model`. Raises `CodedError` with the router's code."""
    candidates = [provider for provider in catalogue.providers_of(model) if provider in providers]
    if asked:
        if asked not in providers:
            known = ", ".join(providers.ids) or "none"
            raise CodedError(UNKNOWN_PROVIDER, f"no provider {asked} is registered (registered: {known})")
        return Route(asked, candidates)
    if len(candidates) == 1:
        return Route(candidates[0], candidates)
    if candidates:
        raise CodedError(AMBIGUOUS, f"model {model} is listed by {', '.join(candidates)}: name a provider")
    for heuristic in settings.routing_heuristics:
        if heuristic.provider in providers and fnmatchcase(model, heuristic.pattern):
            return Route(heuristic.provider, candidates)
    if settings.default_provider is not None and settings.default_provider in providers:
        return Route(settings.default_provider, candidates)
    raise CodedError(NO_PROVIDER, f"no provider lists model {model}, and no routing rule or default provider takes it")
