"""Parts of the stack as processes of their own: what they say, what they refuse, in which order they start."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path

import pytest

from iii_testing.arrangements import Arrangement, PartProcess
from iii_testing.processes import StackProcess, environment, inside


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory):
    running = StackProcess(tmp_path_factory.mktemp("whole") / "data")
    yield running
    running.end()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.mark.requirement("stack.apart.yields")
@pytest.mark.parametrize(("part", "more"), [("queue", ()), ("siblings", ("--grace", "0"))])
def test_a_part_that_the_engine_has_already_is_refused(
    whole: StackProcess, tmp_path: Path, part: str, more: tuple[str, ...]
) -> None:
    done = inside(part, "--engine", whole.url, "--data-dir", str(tmp_path / part), *more, "--json", env=whole.env)
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "served"
    assert f"--without {part}" in error["message"]


@pytest.mark.requirement("stack.apart.name")
def test_a_second_harness_is_refused_and_says_why(whole: StackProcess, tmp_path: Path) -> None:
    second = PartProcess("harness", whole.url, tmp_path, whole.env)
    second.start(ready=False)
    code, said = second.wait()
    assert code == 1
    assert "iii-harness: WORKER_NAMESPACE_CONFLICT" in said


@pytest.mark.requirement("stack.apart.no-engine")
def test_a_part_without_an_engine_to_name_says_how_to_start_one(tmp_path: Path) -> None:
    done = inside("queue", env=environment(tmp_path / "data"))
    assert done.returncode == 1
    assert "iii-stack up" in done.stderr


@pytest.mark.requirement("stack.apart.order")
def test_the_order_of_start_does_not_matter(tmp_path: Path) -> None:
    port = free_port()
    env = environment(tmp_path / "data")
    parts = {
        part: PartProcess(part, f"ws://127.0.0.1:{port}", tmp_path / "parts", env) for part in Arrangement.QUEUE.apart
    }
    parts["harness"].start(ready=False)
    stack = StackProcess(tmp_path / "data", *Arrangement.QUEUE.options, port=port)
    try:
        for part in ("siblings", "queue"):
            assert not parts["harness"].is_ready
            parts[part].start()
        parts["harness"].ready()
        said = parts["harness"].log
        assert '"waits_for": "queue (queue::define), session-manager (session::append), llm-router' in said
        assert stack.cli("chat", "What can you do here?").returncode == 0
        parts["siblings"].kill()
        parts["siblings"].start()
        assert stack.cli("chat", "What can you do here?").returncode == 0
    finally:
        for part in parts.values():
            if part.runs:
                assert part.end() == 0
        stack.end()


@pytest.mark.requirement("stack.data.missing-log")
def test_a_missing_log_is_told_and_accepted_only_when_asked_to(tmp_path: Path) -> None:
    first = StackProcess(tmp_path / "data")
    first.end(signal.SIGKILL)
    (tmp_path / "data" / "stack.db-wal").unlink()
    refused = inside("up", "--port", "0", env=first.env)
    assert refused.returncode == 1
    assert "--accept-missing-log" in refused.stderr
    second = StackProcess(tmp_path / "data", "--accept-missing-log")
    assert second.end() == 0


@pytest.mark.slow
@pytest.mark.requirement("stack.apart.ends-waiting")
def test_a_stack_that_ends_while_a_step_waits_for_a_sibling_goes_on_at_its_next_start(tmp_path: Path) -> None:
    first = StackProcess(tmp_path / "data", "--without", "siblings,page")
    siblings = PartProcess("siblings", first.url, tmp_path / "parts", first.env)
    siblings.start()
    steps = [{"emit": [{"delay_ms": 400}, {"call": {"function": "engine::workers::list", "payload": {}}}]}] * 3
    sent = first.call(
        "harness::send",
        {
            "message": "look",
            "provider": "scripted",
            "model": "demo",
            "options": {
                "functions": {"allow": ["engine::workers::*"]},
                "provider_options": {"scripted": {"steps": [*steps, {"emit": [{"text": "Done."}]}]}},
            },
        },
    )
    siblings.kill()
    began = time.monotonic()
    assert first.end() == 0
    assert time.monotonic() - began < 8, "a step that waits does not hold the end back"
    second = StackProcess(tmp_path / "data", "--without", "siblings,page", port=int(first.url.rsplit(":", 1)[1]))
    try:
        siblings.start()
        deadline = time.monotonic() + 60
        while (status := second.json("status", sent["session_id"])["status"]) == "running":
            assert time.monotonic() < deadline, status
        assert status == "completed"
    finally:
        siblings.end()
        second.end()
