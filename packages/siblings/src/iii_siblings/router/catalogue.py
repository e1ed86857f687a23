"""The model catalogue: one slice per provider, capabilities, output budgets (siblings 2.4, 5.1, 5.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

UNKNOWN_MODEL_BUDGET = 8_192
"""Output budget of a model that the catalogue does not know."""

ModelEntry = dict[str, Any]
"""A catalogue entry as it travels."""


class Catalogue:
    """Entries by provider, each provider's in its own order."""

    def __init__(self) -> None:
        self._slices: dict[str, dict[str, ModelEntry]] = {}

    def replace(self, provider: str, models: Sequence[ModelEntry]) -> bool:
        """Replace a provider's slice; False when it is what was known. A repeated id keeps the last entry."""
        entries = {model["id"]: {**model, "provider": provider} for model in models}
        if list(self._slices.get(provider, {}).values()) == list(entries.values()):
            return False
        self._slices[provider] = entries
        return True

    def remove(self, provider: str) -> None:
        """Forget a provider's slice."""
        self._slices.pop(provider, None)

    def of(self, provider: str) -> list[ModelEntry]:
        """A provider's slice."""
        return list(self._slices.get(provider, {}).values())

    def get(self, provider: str, model: str) -> ModelEntry | None:
        """One entry."""
        return self._slices.get(provider, {}).get(model)

    def find(self, provider: str, model: str) -> ModelEntry | None:
        """One entry; an empty provider finds the only provider that lists the model."""
        if provider:
            return self.get(provider, model)
        listed = self.providers_of(model)
        return self.get(listed[0], model) if len(listed) == 1 else None

    def providers_of(self, model: str) -> list[str]:
        """The providers that list a model, sorted."""
        return sorted(provider for provider, entries in self._slices.items() if model in entries)

    def select(self, provider: str | None, capability: str | None, modality: str) -> Iterator[ModelEntry]:
        """The entries that fit all of the given filters."""
        for at, entries in sorted(self._slices.items()):
            if provider is not None and at != provider:
                continue
            for model in entries.values():
                if _of_modality(model, modality) and (capability is None or supports(model, capability)):
                    yield model


def supports(model: ModelEntry | None, capability: str) -> bool:
    """Whether a model has a capability; False for an unknown model, an unknown capability and an absent flag."""
    if model is None:
        return False
    if capability in ("tools", "vision", "cache", "structured_output", "thinking"):
        return model.get(f"supports_{capability}") is True
    if capability == "thinking:xhigh":
        return model.get("supports_xhigh") is True
    if capability in ("thinking:low", "thinking:medium", "thinking:high"):
        return _reaches(model, capability.removeprefix("thinking:"))
    return False


def output_budget(model: ModelEntry | None, asked: int | None, configured: int | None, ceiling_default: int) -> int:
    """The output budget of one generation: what was asked for or configured, within the model's ceiling."""
    wanted = asked if asked is not None else configured
    if model is None:
        return wanted if wanted is not None else UNKNOWN_MODEL_BUDGET
    ceiling = int(model["max_output_tokens"])
    return min(ceiling, wanted if wanted is not None else ceiling_default)


def _reaches(model: ModelEntry, level: str) -> bool:
    if model.get("supports_thinking") is not True:
        return False
    steps: list[dict[str, Any]] = model.get("reasoning_efforts") or []
    efforts = [step.get("effort") for step in steps]
    return not efforts or level in efforts


def _of_modality(model: ModelEntry, modality: str) -> bool:
    if modality == "any":
        return True
    speech: dict[str, Any] = model.get("speech") or {}
    return speech.get("modality", "chat") == modality
