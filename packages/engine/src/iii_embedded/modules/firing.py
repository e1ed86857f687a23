"""How the trigger types of the engine fire (engine spec 9.5): conditions first, at most once, never waited for.

A binding's `condition_function_id` is called with the payload before its function; only an explicit false skips, and
so does a condition that fails. Bindings without a condition cost one void call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from iii_contracts.spec import TriggerSpec
from iii_kit.bindings import Bindings, Bound, event
from iii_kit.bus import Binding, Bus, Invocation, Json, Opts
from iii_kit.errors import BusError, EpochEnded
from iii_kit.logs import logger
from iii_kit.storage import Tx
from iii_kit.trace import Carrier, received

Matches = Callable[[Any], bool]

_log = logger(__name__)


class EngineTrigger:
    """Provider of one trigger type of the engine. Its configs have a `condition_function_id`."""

    def __init__(self, bus: Bus, spec: TriggerSpec, *, null_is_empty: bool = False) -> None:
        self._bus = bus
        self._null_is_empty = null_is_empty
        self._running: set[asyncio.Task[None]] = set()
        self.bindings = Bindings(spec)

    async def bound(self, binding: Binding) -> None:
        """Accept a binding, or refuse its config by name."""
        if binding.config is None and not self._null_is_empty:
            raise BusError("trigger_registration_failed", f"{self.bindings.spec.id}: the config must be an object")
        await self.bindings.bound(binding)

    async def unbound(self, binding_id: str) -> None:
        """Withdraw."""
        await self.bindings.unbound(binding_id)

    def renewed(self) -> None:
        """Forget all."""
        self.bindings.renewed()

    def after(self, tx: Tx, invocation: Invocation, matches: Matches, payload: Callable[[], Json]) -> None:
        """Fire the bindings that match once `tx` is on disk; `payload` is asked for only when there are any."""
        if not len(self.bindings):
            return
        told = [bound for bound in self.bindings if matches(bound.config)]
        if not told:
            return
        data = payload()
        for bound in told:
            if bound.config.condition_function_id is None:
                tx.after_commit(event(bound.binding, data))
            else:
                trace = Carrier(invocation.traceparent, invocation.baggage)
                tx.on_commit(partial(self._start, bound, data, trace))

    async def fire(self, matches: Matches, data: Json, *, with_metadata: bool = True) -> None:
        """Fire the bindings that match now, without waiting for conditions or functions."""
        for bound in self.bindings:
            if not matches(bound.config):
                continue
            if bound.config.condition_function_id is None:
                metadata = bound.binding.metadata if with_metadata else None
                opts = Opts(metadata=metadata, namespace=bound.binding.namespace or "default")
                await self._bus.void(bound.binding.function_id, data, opts=opts)
            else:
                self._start(bound, data, None, with_metadata=with_metadata)

    def _start(self, bound: Bound, data: Json, trace: Carrier | None, *, with_metadata: bool = True) -> None:
        task = asyncio.get_running_loop().create_task(self._conditioned(bound, data, trace, with_metadata))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _conditioned(self, bound: Bound, data: Json, trace: Carrier | None, with_metadata: bool) -> None:
        metadata = bound.binding.metadata if with_metadata else None
        opts = Opts(metadata=metadata, namespace=bound.binding.namespace or "default")
        with received(trace or Carrier()):
            try:
                if await allowed(self._bus, bound, data):
                    await self._bus.void(bound.binding.function_id, data, opts=opts)
            except BusError as error:
                _log.warning("event_not_sent", function=bound.binding.function_id, code=error.code)


async def allowed(bus: Bus, bound: Bound, data: Json) -> bool:
    """Ask the condition of a binding, if it has one: False when it answers false or fails."""
    condition: str | None = bound.config.condition_function_id
    if condition is None:
        return True
    try:
        answer = await bus.call(condition, data, opts=Opts(namespace=bound.binding.namespace or "default"))
    except EpochEnded:
        raise
    except BusError as error:
        _log.info("condition_failed", function=condition, binding=bound.binding.id, code=error.code)
        return False
    return answer is not False
