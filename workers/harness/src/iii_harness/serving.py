"""The functions a worker serves, and how many of their calls run now: a drain closes them and awaits the calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from iii_contracts.spec import FunctionSpec
from iii_kit.bus import Handle, Host, Invocation, Json
from iii_kit.world import Clock

Handler = Callable[[Any, Invocation], Awaitable[Json]]


class Serving:
    """Serves functions until it is closed."""

    def __init__(self, bus: Host) -> None:
        self._bus = bus
        self._handles: list[Handle] = []
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def serve(self, spec: FunctionSpec, run: Handler) -> None:
        """Serve a function; its calls are counted while they run."""

        async def counted(request: Any, invocation: Invocation) -> Json:
            if self._running == 0:
                self._idle.clear()
            self._running += 1
            try:
                return await run(request, invocation)
            finally:
                self._running -= 1
                if self._running == 0:
                    self._idle.set()

        self._handles.append(self._bus.serve(spec, counted))

    def close(self) -> None:
        """Take every function back; calls that run go on."""
        for handle in self._handles:
            handle.close()
        self._handles.clear()

    async def idle(self, clock: Clock, seconds: float) -> bool:
        """Wait until no call runs, for at most `seconds`; False when some still do."""
        waits = asyncio.ensure_future(self._idle.wait())
        late = asyncio.ensure_future(clock.sleep(seconds))
        try:
            await asyncio.wait({waits, late}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waits.cancel()
            late.cancel()
        return self._running == 0
