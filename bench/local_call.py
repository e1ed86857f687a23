"""What one in-process call costs on the engine's loop, beside encoding and decoding its payload.

    python bench/local_call.py

Prints, per kind of handler, wall time and CPU time of the loop's thread for calls made one after the other and by 16
callers at once, and the cost of encoding, decoding and validating the same payload by itself.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from iii_contracts.model import Wire
from iii_contracts.spec import FunctionSpec
from iii_embedded import Engine, EngineSettings
from iii_kit.bus import Call, ReadHandler, TxHandler
from iii_kit.encoding import decode, encode
from iii_kit.world import real_world
from iii_store import Family, SqliteStore


class Put(Wire):
    """A row."""

    key: str
    value: int
    text: str


PUT = FunctionSpec("bench::put", "Write a row.", Put, None, "bench/invalid")
GET = FunctionSpec("bench::get", "Read a row.", Put, None, "bench/invalid")
ECHO = FunctionSpec("bench::echo", "Answer.", Put, None, "bench/invalid")
FAMILY = Family("bench", (("CREATE TABLE rows(key TEXT PRIMARY KEY, value INTEGER, text TEXT) WITHOUT ROWID",),))
PAYLOAD = {"key": "k", "value": 1, "text": "x" * 200}
ROUNDS = 2_000


def put(tx, row, _):
    tx.execute("INSERT OR REPLACE INTO rows VALUES(?, ?, ?)", (row.key, row.value, row.text))
    return {"ok": True}


def get(reader, row, _):
    found = reader.execute("SELECT value, text FROM rows WHERE key = ?", (row.key,)).fetchone()
    return {"value": found[0], "text": found[1]} if found else None


async def echo(row, _):
    return {"ok": True}


async def measure(name: str, once: Callable[[], Awaitable[object]], calls: int = 1) -> None:
    for width in (1, 16):
        rounds = ROUNDS // width // calls

        async def worker(rounds: int = rounds) -> None:
            for _ in range(rounds):
                await once()

        await once()
        wall, cpu = time.perf_counter(), time.thread_time()
        await asyncio.gather(*[worker() for _ in range(width)])
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
        made = rounds * width * calls
        print(f"{name:24} x{width:<3} wall {wall / made * 1e6:7.1f} us   loop CPU {cpu / made * 1e6:6.1f} us")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder, "bench.db"), [FAMILY])
        engine = Engine(real_world(), store, EngineSettings(port=None))
        await engine.start()
        owner, caller = engine.attach("owner"), engine.attach("caller")
        owner.serve(PUT, TxHandler(put))
        owner.serve(GET, ReadHandler(get, bounded=True))
        owner.serve(ECHO, echo)
        await measure("write", lambda: caller.call("bench::put", PAYLOAD))
        three = [Call("bench::put", PAYLOAD)] * 3
        await measure("sequence of 3 writes", lambda: caller.sequence(three), 3)
        await measure("bounded read", lambda: caller.call("bench::get", PAYLOAD))
        await measure("async", lambda: caller.call("bench::echo", PAYLOAD))
        start = time.perf_counter()
        for _ in range(ROUNDS):
            PUT.parse(decode(encode(PAYLOAD)))
            decode(encode({"ok": True}))
        print(f"payload by itself: {(time.perf_counter() - start) / ROUNDS * 1e6:.1f} us")
        await engine.close()
        store.close()


if __name__ == "__main__":
    asyncio.run(main())
