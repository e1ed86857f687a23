"""Workers on a bus of any kind, for tests that hold on each of them."""

from __future__ import annotations

import uuid
from types import TracebackType
from typing import Any

from iii_contracts.spec import FunctionSpec, TriggerSpec
from iii_kit.bus import Bus, Handler, ReadHandler, TxHandler
from iii_kit.clients.engine import EngineClient
from iii_kit.errors import BusError
from iii_kit.sdk_bus import SdkBus, SdkOptions
from iii_kit.storage import Store
from iii_testing.embedded import Embedded
from iii_testing.waiting import until_async


def unique(prefix: str = "demo::f") -> str:
    """An id that no other test uses."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def function(name: str | None = None, request: Any = None, *, invalid: str = "demo/invalid_request") -> FunctionSpec:
    """A declared function of a fresh id; without a request model it takes any JSON."""
    return FunctionSpec(name or unique(), "A function of a test.", request, None, invalid)


def trigger_type(config: Any, payload: Any = None) -> TriggerSpec:
    """A declared trigger type of a fresh id."""
    return TriggerSpec(unique("demo::t"), "A trigger type of a test.", config, payload)


class Wire:
    """One kind of bus. `attach` gives a connected worker; `store` is where its transactions go."""

    def __init__(self, kind: str, url: str | None, store: Store, stack: Embedded | None) -> None:
        self.kind = kind
        self.url = url
        self.store = store
        self.stack = stack
        self._buses: list[SdkBus] = []

    @property
    def over_socket(self) -> bool:
        return self.url is not None

    async def __aenter__(self) -> Wire:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None):
        for bus in self._buses:
            await bus.close()

    async def attach(self, name: str | None = None, *, url: str | None = None, connected: bool = True) -> Bus:
        """A worker with a name of its own."""
        name = name or unique("worker")
        if self.url is None:
            assert self.stack is not None
            return self.stack.attach(name, stepwise=self.kind == "stepwise")
        options = SdkOptions(name, url=url or self.url, reconnect_initial_ms=20, reconnect_max_ms=100)
        bus = SdkBus(options, self.store)
        self._buses.append(bus)
        if connected:
            await bus.connected()
        return bus

    async def serve(
        self, bus: Bus, run: Handler | TxHandler | ReadHandler, spec: FunctionSpec | None = None
    ) -> FunctionSpec:
        """Serve a function and wait until it can be called."""
        spec = spec or function()
        bus.serve(spec, run)
        await self.callable(bus, spec.id)
        return spec

    async def callable(self, bus: Bus, function_id: str) -> None:
        """Wait until the engine knows a function."""
        engine = EngineClient(bus)

        async def known() -> bool:
            try:
                return await engine.function(function_id) is not None
            except BusError as error:
                if error.matches("NOT_FOUND"):
                    return False
                raise

        await until_async(known, what=f"{function_id} is known")
