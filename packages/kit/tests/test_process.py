"""A process with a bus ends, with telemetry on and work running, and leaves nothing behind (engine spec 21.1)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from iii_kit.process import CLOSE_S, DRAIN_S, run_until

SCRIPT = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from iii_testing.buses import function
from iii_testing.embedded import embedded
from iii_kit.sdk_bus import SdkOptions, connect

async def forever(_, __):
    await asyncio.Event().wait()

async def main():
    async with embedded(listening=True) as stack:
        async with connect(SdkOptions("worker", url=stack.url, telemetry=sys.argv[2] == "on")) as bus:
            bus.serve(function("demo::forever"), forever)
            await bus.connected()
            await bus.call("state::set", {"scope": "s", "key": "k", "value": 1})
            await bus.void("demo::forever", {})
            print(await bus.call("state::get", {"scope": "s", "key": "k"}))

asyncio.run(main())
print("ended")
"""


@pytest.mark.requirement("kit.bus.process")
@pytest.mark.parametrize("telemetry", ["on", "off"])
def test_a_process_ends_cleanly_after_its_bus_is_closed(tmp_path: Path, telemetry: str) -> None:
    support = Path(__file__).resolve().parents[3] / "tests" / "lib"
    ended = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", SCRIPT, str(support), telemetry],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stdout == "1\nended\n", ended.stderr
    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr, ended.stderr
    assert "never awaited" not in ended.stderr, ended.stderr
    assert list((tmp_path / ".iii" / "run").iterdir()) == []


@pytest.mark.anyio
@pytest.mark.requirement("kit.process.ends")
async def test_nothing_that_runs_holds_the_end_back_for_half_a_second() -> None:
    async def deaf(stop: asyncio.Event) -> None:
        await stop.wait()
        await asyncio.Event().wait()

    assert DRAIN_S + CLOSE_S < 0.5
    stop = asyncio.Event()
    stop.set()
    async with asyncio.timeout(5):
        await run_until(stop, deaf(stop))
