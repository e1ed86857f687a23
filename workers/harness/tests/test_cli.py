"""The worker as a process of its own, beside an embedded engine with its siblings."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from iii_harness.cli import main
from iii_kit import logs
from iii_kit.errors import BusError
from iii_siblings import router, sessions
from iii_siblings.providers import scripted
from iii_testing.embedded import Embedded, embedded
from iii_testing.waiting import until_async


@asynccontextmanager
async def siblings() -> AsyncIterator[Embedded]:
    async with embedded(families=(sessions.FAMILY, router.FAMILY), listening=True) as stack:
        parts = [
            sessions.install(stack.attach("session-manager"), stack.world),
            router.install(stack.attach("llm-router"), stack.world, stack.store),
            scripted.install(stack.attach("provider-scripted"), stack.world),
        ]
        for part in parts:
            await part.ready()
        yield stack
        for part in reversed(parts):
            await part.drain()


async def started(*arguments: str, **environment: str) -> asyncio.subprocess.Process:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("III_")}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "iii_harness",
        *arguments,
        env={**kept, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def until_ready(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    async for line in process.stderr:
        if json.loads(line).get("event") == "ready":
            return
    raise AssertionError("it ended without becoming ready")


@pytest.mark.anyio
@pytest.mark.requirement("prompt.cli")
async def test_a_process_answers_a_message_and_ends_with_0(tmp_path: Path) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text("default_max_turns: ${TURNS}\n")
    async with siblings() as stack:
        process = await started("--config", str(seed), III_URL=stack.url, TURNS="7")
        await until_ready(process)
        caller = stack.attach("caller")
        sent = await caller.call(
            "harness::send",
            {
                "message": "hello",
                "model": "demo",
                "provider": "scripted",
                "options": {"functions": {"allow": ["engine::functions::*"]}},
            },
        )

        async def status() -> dict:
            return await caller.call("harness::status", {"session_id": sent["session_id"]})

        async def over() -> bool:
            return (await status())["status"] == "completed"

        await until_async(over, seconds=30)
        assert (await status())["max_turns"] == 7
        used = await caller.call("harness::metrics", {"session_id": sent["session_id"]})
        assert (used["complete"], used["totals"]["turns"], used["totals"]["function_calls"]) == (True, 2, 1)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(5):
            assert await process.wait() == 0
        with pytest.raises(BusError):
            await caller.call("harness::status", {"session_id": "x"})


@pytest.mark.requirement("prompt.cli")
@pytest.mark.parametrize(
    ("text", "said"), [("turn_concurrency: 0", "`turn_concurrency`"), ("a: [", "not YAML"), (None, "seed.yaml")]
)
def test_a_start_that_cannot_succeed_says_why(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    text: str | None,
    said: str,
) -> None:
    monkeypatch.setattr(logs, "configure", lambda _: None)
    seed = tmp_path / "seed.yaml"
    if text is not None:
        seed.write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["--config", str(seed)])
    assert ended.value.code == 1
    assert said in capsys.readouterr().err


@pytest.mark.requirement("prompt.manifest.flag")
def test_the_manifest_flag_prints_json_and_connects_to_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--manifest"])
    assert json.loads(capsys.readouterr().out)["name"] == "harness"
    with pytest.raises(SystemExit) as ended:
        main(["--unknown"])
    assert ended.value.code == 2
