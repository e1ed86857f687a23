"""Trigger types and their bindings (engine spec 9.1 to 9.4).

A type is provided by one worker. A binding is served by the first of its candidate types that exists, pending when
there is none, and moves when that changes. Types of the engine itself refuse at once and keep nothing they refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from iii_contracts.spec import TriggerSpec
from iii_embedded.calls import Failure
from iii_embedded.registry import DEFAULT
from iii_embedded.workers import Worker
from iii_kit.errors import BusError
from iii_kit.logs import logger
from iii_kit.world import Clock, Ids

ACKNOWLEDGEMENT_S = 10.0
"""How long `engine::register_trigger` waits for the provider's answer."""

Key = tuple[str, str]
"""Namespace and id of a trigger type."""

_log = logger(__name__)


@dataclass(slots=True, eq=False)
class TriggerType:
    """A provided trigger type."""

    id: str
    namespace: str
    provider: Worker
    description: str
    config: Any = None
    payload: Any = None
    spec: TriggerSpec | None = None

    @property
    def key(self) -> Key:
        """Its address."""
        return (self.namespace, self.id)

    @property
    def config_schema(self) -> Any:
        """The schema of a binding's config as it was registered."""
        return self.config if self.spec is None else self.spec.config_schema

    @property
    def payload_schema(self) -> Any:
        """The schema of what bound functions get as it was registered."""
        return self.payload if self.spec is None else self.spec.payload_schema


@dataclass(slots=True, eq=False)
class BoundTrigger:
    """A binding. `owner` made it by message and takes it along when it leaves; None for one made by function."""

    id: str
    trigger_type: str
    function_id: str
    config: bytes
    metadata: bytes | None = None
    namespace: str = DEFAULT
    candidates: tuple[Key, ...] = field(default=())
    owner: Worker | None = None
    served_by: Key | None = None
    """The type that serves it; None while it is pending."""


@dataclass(slots=True)
class _Question:
    """A binding that is kept only once its provider has accepted it."""

    binding: BoundTrigger
    key: Key
    answer: asyncio.Future[Failure | None]


def candidates(trigger_type: str, asked: str | None, own: str) -> tuple[Key, ...]:
    """Where the type of a binding is looked for: strictly where asked, else in the own namespace, then in default."""
    if asked is not None:
        return ((asked, trigger_type),)
    if own == DEFAULT:
        return ((DEFAULT, trigger_type),)
    return ((own, trigger_type), (DEFAULT, trigger_type))


class TriggerTable:
    """All types and bindings of the engine."""

    def __init__(self, ids: Ids, clock: Clock) -> None:
        self._clock = clock
        self.types: dict[Key, TriggerType] = {}
        self._ids = ids
        self._bindings: dict[str, BoundTrigger] = {}
        self._asked: list[_Question] = []

    def active(self) -> Iterator[BoundTrigger]:
        """Every binding that is served now."""
        return (binding for binding in self._bindings.values() if binding.served_by is not None)

    def find(self, binding_id: str) -> BoundTrigger | None:
        """The active binding of that id."""
        binding = self._bindings.get(binding_id)
        return None if binding is None or binding.served_by is None else binding

    # -- types

    def provide(self, new: TriggerType) -> None:
        """A worker provides a type: it gets every binding that the type now serves."""
        old = self.types.get(new.key)
        if old is not None and old.provider.builtin and not new.provider.builtin:
            _log.warning("trigger_type_reserved", type=new.id, worker=new.provider.name)
            return
        self.types[new.key] = new
        for binding in list(self._bindings.values()):
            if new.key in binding.candidates and self._first(binding) == new.key:
                self._move(binding, new)

    def retract(self, worker: Worker, namespace: str, type_id: str) -> None:
        """The provider takes its type back; others cannot."""
        type_ = self.types.get((namespace, type_id))
        if type_ is not None and type_.provider is worker:
            self._drop_type(type_)

    def _move(self, binding: BoundTrigger, to: TriggerType) -> None:
        served = binding.served_by
        if served is not None and served != to.key and served in self.types:
            self.types[served].provider.withdraw(binding)
        binding.served_by = to.key
        self._offer(binding, to)

    def _drop_type(self, type_: TriggerType) -> None:
        del self.types[type_.key]
        for question in [asked for asked in self._asked if asked.key == type_.key]:
            if not question.answer.done():
                question.binding.served_by = None
                question.answer.set_result(None)
        for binding in list(self._bindings.values()):
            if binding.served_by != type_.key:
                continue
            binding.served_by = None
            other = self._first(binding)
            if other is not None:
                self._move(binding, self.types[other])

    def _first(self, binding: BoundTrigger) -> Key | None:
        return next((key for key in binding.candidates if key in self.types), None)

    # -- bindings

    def bind(self, binding: BoundTrigger) -> None:
        """A binding by message: live at once where its type is a worker's, once accepted where it is the engine's."""
        key = self._first(binding)
        if key is None:
            self._bindings[binding.id] = binding
            return
        type_ = self.types[key]
        binding.served_by = key
        if not type_.provider.builtin:
            self._bindings[binding.id] = binding
            self._offer(binding, type_)
            return
        answer = self._ask(binding, type_)
        answer.add_done_callback(lambda done: self._answered(binding, done))

    async def bind_by_function(
        self, trigger_type: str, function_id: str, config: bytes, metadata: bytes | None, asked: str | None
    ) -> str:
        """A binding without an owner; kept once its provider has accepted it, or has been silent for too long."""
        binding = BoundTrigger(self._ids.uuid(), trigger_type, function_id, config, metadata)
        binding.candidates = candidates(trigger_type, asked, DEFAULT)
        key = self._first(binding)
        if key is not None:
            binding.served_by = key
            type_ = self.types[key]
            answer = self._ask(binding, type_)
            patience = asyncio.ensure_future(self._clock.sleep(ACKNOWLEDGEMENT_S))
            try:
                await asyncio.wait([answer, patience], return_when=asyncio.FIRST_COMPLETED)
            finally:
                patience.cancel()
            if answer.cancelled():
                raise BusError("trigger_registration_failed", "the binding was withdrawn before it was accepted")
            failure = answer.result() if answer.done() else None
            answer.cancel()
            if failure is not None:
                text = failure.message if type_.provider.builtin else f"{failure.code}: {failure.message}"
                raise BusError("trigger_registration_failed", text)
        self._bindings[binding.id] = binding
        return binding.id

    def unbind(self, binding_id: str) -> bool:
        """Withdraw a binding, whoever made it; False when there is none."""
        binding = self._bindings.pop(binding_id, None)
        waiting = [asked for asked in self._asked if asked.binding.id == binding_id]
        if binding is None and not waiting:
            return False
        for question in waiting:
            self._withdraw(question.binding)
            if not question.answer.done():
                question.answer.cancel()
        if binding is not None:
            self._withdraw(binding)
        return True

    def forget(self, worker: Worker) -> None:
        """A worker is gone: its bindings end, its types too, and other workers' bindings on them wait."""
        for binding in [bound for bound in self._bindings.values() if bound.owner is worker]:
            del self._bindings[binding.id]
            self._withdraw(binding)
        for question in [asked for asked in self._asked if asked.binding.owner is worker]:
            self.unbind(question.binding.id)
        for type_ in [type_ for type_ in self.types.values() if type_.provider is worker]:
            self._drop_type(type_)

    def _withdraw(self, binding: BoundTrigger) -> None:
        type_ = None if binding.served_by is None else self.types.get(binding.served_by)
        if type_ is not None:
            type_.provider.withdraw(binding)

    def _offer(self, binding: BoundTrigger, type_: TriggerType) -> None:
        provider = type_.provider

        def acknowledge(failure: Failure | None) -> None:
            if failure is not None:
                self._park(binding, provider, failure)

        provider.offer(binding, acknowledge)

    def _park(self, binding: BoundTrigger, provider: Worker, failure: Failure) -> None:
        served = None if binding.served_by is None else self.types.get(binding.served_by)
        if self._bindings.get(binding.id) is not binding or served is None or served.provider is not provider:
            return
        binding.served_by = None
        if binding.owner is not None:
            binding.owner.refuse_binding(binding, failure)

    def _ask(self, binding: BoundTrigger, type_: TriggerType) -> asyncio.Future[Failure | None]:
        answer: asyncio.Future[Failure | None] = asyncio.get_running_loop().create_future()
        question = _Question(binding, type_.key, answer)
        self._asked.append(question)
        answer.add_done_callback(lambda _: self._asked.remove(question))
        provider = type_.provider

        def acknowledge(failure: Failure | None) -> None:
            if not answer.done():
                answer.set_result(failure)
            elif failure is not None:
                self._park(binding, provider, failure)

        provider.offer(binding, acknowledge)
        return answer

    def _answered(self, binding: BoundTrigger, done: asyncio.Future[Failure | None]) -> None:
        if done.cancelled() or binding.owner is None or binding.owner.gone:
            return
        failure = done.result()
        if failure is None:
            self._bindings[binding.id] = binding
        else:
            text = Failure("trigger_registration_failed", failure.message)
            binding.owner.refuse_binding(binding, text)
