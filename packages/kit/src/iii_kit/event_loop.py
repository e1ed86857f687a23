"""The event loop that processes of this project run on.

uvloop: the bookkeeping of a loop written in Python is a tenth of what a step of the harness costs (`bench/README.md`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on that loop: the same signals, the same end."""
    # Here, so that a module may name this one without paying for the loop.
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
