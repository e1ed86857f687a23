"""A bus whose n-th outgoing operation fails: refused before it is done, or done with its answer lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from iii_kit.bus import Bus, Call, Channel, Opts
from iii_kit.errors import BusError, PartialSequence

Flavour = Literal["refused", "lost"]


class FaultyBus:
    """Everything of `inner`, but one operation; calls, enqueues, channels and members of sequences count.

    Voids do not: what is lost of them is lost by contract.
    """

    def __init__(self, inner: Bus, flavour: Flavour) -> None:
        self._inner = inner
        self._left = 0
        self._flavour: Flavour = flavour
        self.struck: str | None = None

    def arm(self, nth: int) -> None:
        """Let the `nth` operation from now fail."""
        self._left = nth

    def calm(self) -> None:
        """Let nothing fail any more."""
        self._left = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def call(self, fn: str, data: Any, *, opts: Opts = Opts()) -> Any:
        if not self._strikes(fn):
            return await self._inner.call(fn, data, opts=opts)
        if self._flavour == "lost":
            await self._inner.call(fn, data, opts=opts)
        raise self._error(fn)

    async def enqueue(self, queue: str, fn: str, data: Any) -> str:
        if self._strikes(f"enqueue {fn}") and self._flavour == "refused":
            raise self._error(fn)
        return await self._inner.enqueue(queue, fn, data)

    async def channel(self, buffer: int = 64) -> Channel:
        if self._strikes("channel"):
            raise self._error("engine::channels::create")
        return await self._inner.channel(buffer)

    async def sequence(self, calls: Sequence[Call]) -> list[Any]:
        at = next((index for index, call in enumerate(calls) if self._strikes(f"{call.kind} {call.fn}")), None)
        if at is None:
            return await self._inner.sequence(calls)
        done = list(await self._inner.sequence(calls[:at])) if at else []
        if self._flavour == "lost":
            await self._inner.sequence(calls[at : at + 1])
        raise PartialSequence(done, self._error(calls[at].fn))

    def _strikes(self, what: str) -> bool:
        if self.struck is not None or self._left == 0:
            return False
        self._left -= 1
        if self._left:
            return False
        self.struck = what
        return True

    def _error(self, fn: str) -> BusError:
        if self._flavour == "lost":
            return BusError("TIMEOUT", f"{fn}: no answer in time", fn)
        return BusError("ADAPTER_ERROR", f"{fn}: the disk is full", fn)
