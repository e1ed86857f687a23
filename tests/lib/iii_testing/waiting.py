"""Waiting for conditions: a test never waits for a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from iii_testing.world import ManualWorld

T = TypeVar("T")


async def until(condition: Callable[[], object], *, seconds: float = 10, what: str = "") -> None:
    """Return as soon as `condition()` is true; fails after `seconds`."""
    deadline = asyncio.get_running_loop().time() + seconds
    pause = 0.0
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"not within {seconds} s: {what or condition}")
        await asyncio.sleep(pause)
        pause = min(pause + 0.0005, 0.01)


async def settle(turns: int = 20) -> None:
    """Let everything that is ready on this loop run (not what other threads still have to hand over)."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def until_async(condition: Callable[[], Awaitable[object]], *, seconds: float = 10, what: str = "") -> None:
    """`until` for a condition that has to be asked for."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def driven(world: ManualWorld, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, moving the clock from deadline to deadline whenever nothing else is left to run."""
    task = asyncio.create_task(work)
    while not task.done():
        await settle()
        wake = world.manual_clock.next_wake
        if not task.done() and wake is not None:
            await world.advance(max(wake, 0.0))
        else:
            await asyncio.sleep(0.0005)
    return await task
