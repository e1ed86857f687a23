"""The bindings of a trigger type, kept by its provider (engine spec 9.5, 21.7; siblings 1.4).

A table by binding id: told again replaces, an unknown id withdraws nothing, a new connection forgets all. The config
is validated by the type's contract when the binding arrives; firing makes void calls that carry the binding's
metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from iii_contracts.spec import TriggerSpec
from iii_kit.bus import Binding, Call, Json, Opts
from iii_kit.errors import BusError


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding and its validated config."""

    binding: Binding
    config: Any


class Bindings:
    """Provider of one trigger type: validates, keeps and fires its bindings.

    `on_bound` is called after a binding was accepted (new or told again).
    """

    def __init__(self, spec: TriggerSpec, on_bound: Callable[[Bound], None] | None = None) -> None:
        self.spec = spec
        self._on_bound = on_bound
        self._by_id: dict[str, Bound] = {}

    async def bound(self, binding: Binding) -> None:
        """Accept or refuse: raises `BusError` with code `trigger_registration_failed`, naming the config's field."""
        config, problem = self.spec.parse_config(binding.config)
        if problem is not None:
            raise BusError("trigger_registration_failed", f"{self.spec.id}: {problem}")
        bound = Bound(binding, config)
        self._by_id[binding.id] = bound
        if self._on_bound is not None:
            self._on_bound(bound)

    async def unbound(self, binding_id: str) -> None:
        """Withdraw."""
        self._by_id.pop(binding_id, None)

    def renewed(self) -> None:
        """Forget all; the engine replays what lives."""
        self._by_id.clear()

    def __iter__(self) -> Iterator[Bound]:
        """Over a copy: functions of a transaction look in from the writer's thread."""
        return iter(list(self._by_id.values()))

    def __len__(self) -> int:
        return len(self._by_id)

    def fire(self, payload: Json, matches: Callable[[Any], bool] = lambda _: True) -> list[Call]:
        """The void calls that tell `payload` to every binding whose config `matches`."""
        return [event(bound.binding, payload) for bound in self if matches(bound.config)]


def event(binding: Binding, payload: Json) -> Call:
    """One void call of a bound function with `payload` and the binding's metadata."""
    return Call(
        binding.function_id,
        payload,
        kind="void",
        opts=Opts(metadata=binding.metadata, namespace=binding.namespace or "default"),
    )
