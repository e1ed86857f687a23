"""A process that enqueues five jobs, ends two and is killed while it runs the third. Argument: the directory."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from iii_testing.embedded import embedded
from iii_testing.waiting import until

sys.path.insert(0, str(Path(__file__).parent))

from provided import Queues


async def main(directory: Path) -> None:
    async with embedded(directory=directory) as stack:
        q, never = Queues(stack), asyncio.Event()

        async def run(data: Any) -> None:
            if data["n"] == 2:
                await until(lambda: q.rows("state") == [("running",), ("ready",), ("ready",)])
                print("started a 2", flush=True)
                await never.wait()

        q.serve(run)
        await q.define()
        for n in range(5):
            await q.bus.enqueue("q", "t::fn", {"g": "a", "n": n})
        await never.wait()


asyncio.run(main(Path(sys.argv[1])))
