"""The worker as a process of its own, beside an embedded engine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from iii_eval.cli import main
from iii_kit import logs
from iii_kit.bus import Bus
from iii_kit.errors import BusError
from iii_siblings import sessions
from iii_testing.embedded import embedded


@asynccontextmanager
async def started(*arguments: str, **environment: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process, which is gone at the end whatever happens."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("III_")}
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).parent / "iii-eval"),
        *arguments,
        env={**kept, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def told_until_ready(process: asyncio.subprocess.Process) -> list[str]:
    assert process.stderr is not None
    events: list[str] = []
    async for line in process.stderr:
        events.append(json.loads(line)["event"])
        if events[-1] == "ready":
            return events
    raise AssertionError(f"it ended without becoming ready: {events}")


async def refused(caller: Bus, **request: Any) -> str:
    with pytest.raises(BusError) as error:
        await caller.call("eval::compare-sessions", request)
    assert error.value.code == "invocation_failed"
    return error.value.message


@pytest.mark.anyio
@pytest.mark.requirement("eval.process")
async def test_a_process_compares_sessions_and_ends_with_0(tmp_path: Path) -> None:
    block = tmp_path / "block.yaml"
    block.write_text("anything: 1\n")
    async with (
        embedded(families=(sessions.FAMILY,), listening=True) as stack,
        started("--config", str(block), III_URL=stack.url, III_WORKER_NAME="eval-1") as process,
    ):
        store = sessions.install(stack.attach("session-manager"), stack.world)
        await store.ready()
        assert (await told_until_ready(process))[0] == "settings_ignored"
        caller = stack.attach("caller")
        ids = [(await caller.call("session::create", {"title": title}))["session_id"] for title in ("one", "two")]
        answer = await caller.call("eval::compare-sessions", {"session_ids": ids, "baseline_session_id": ids[1]})
        assert [item["session"]["title"] for item in answer["sessions"]] == ["one", "two"]
        assert "harness::metrics: function_not_found" in answer["sessions"][0]["errors"][1]
        said = await refused(caller, session_ids=ids, baseline_session_id="x")
        assert said.startswith("invalid request: `baseline_session_id`")
        said = await refused(caller, session_ids=ids, baseline_session_id=ids[0], x=1)
        assert said == "invalid request: unknown field `x`"
        listed = await caller.call("engine::workers::list", {})
        assert "eval-1" in {worker["name"] for worker in listed["workers"]}
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(5):
            assert await process.wait() == 0
        await store.drain()


@pytest.mark.requirement("eval.process")
@pytest.mark.parametrize(("text", "said"), [("a: [", "block.yaml"), (None, "block.yaml")])
def test_a_block_that_cannot_be_read_ends_the_process_and_is_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    text: str | None,
    said: str,
) -> None:
    monkeypatch.setattr(logs, "configure", lambda _: None)
    block = tmp_path / "block.yaml"
    if text is not None:
        block.write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["--config", str(block)])
    assert ended.value.code == 1
    assert said in capsys.readouterr().err
