"""Real processes: the stack and its command line, as a person starts them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

from iii_testing.arrangements import Apart, Arrangement

COMMAND = str(Path(sys.executable).parent / "iii-stack")
READY_S = 60.0


FOREIGN = ("ANTHROPIC_", "III_", "OPENAI_", "OTEL_")
"""What a test's processes must not take over from whoever runs it."""


def environment(data: Path, **extra: str) -> dict[str, str]:
    """The environment of a process that knows one data directory and nothing of this machine's providers."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ANTHROPIC_", "III_", "OPENAI_", "OTEL_"))
    }
    return {**kept, "III_STACK_DATA": str(data), "COLUMNS": "120", "NO_COLOR": "1", **extra}


class StackProcess:
    """A running `iii-stack up --json`, with the parts beside it that its arrangement runs apart."""

    def __init__(
        self,
        data: Path,
        *arguments: str,
        port: int = 0,
        arrangement: Arrangement = Arrangement.TOGETHER,
        **extra: str,
    ) -> None:
        self.data = data
        self.log = data.with_name(f"{data.name}.log")
        self.env = environment(data, **extra)
        self._arguments = (*arrangement.options, *arguments)
        self._start(port)
        self.apart = Apart(arrangement, self.url, data.parent / "parts", self.env)
        self.apart.start()

    def _start(self, port: int) -> None:
        started = time.monotonic()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [COMMAND, "up", "--json", "--port", str(port), *self._arguments],
                env=self.env,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.seconds = time.monotonic() - started
        if not line:
            self.process.wait()
            raise AssertionError(f"the stack did not start: {self.log.read_text()}")
        self.ready: dict[str, Any] = json.loads(line)

    def kill(self) -> None:
        """Kill it and every part beside it."""
        for part in self.apart.parts.values():
            part.kill()
        self.process.kill()

    def restart(self) -> None:
        """Kill the stack's own process and start it again at its port; the parts beside it live on."""
        port = int(self.url.rsplit(":", 1)[1])
        self.process.kill()
        self._wait(20)
        self._start(port)

    def _wait(self, seconds: float) -> int:
        code = self.process.wait(seconds)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    @property
    def url(self) -> str:
        return self.ready["bus"]

    def cli(self, *arguments: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run one command against this stack, in this process."""
        return inside(*arguments, env=self.env, input=input)

    def json(self, *arguments: str) -> Any:
        """The JSON that a command prints."""
        done = self.cli(*arguments, "--json")
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    def call(self, function: str, data: Any) -> Any:
        """The answer of one call."""
        return self.json("call", function, json.dumps(data))

    def end(self, number: signal.Signals = signal.SIGTERM, *, seconds: float = 20) -> int:
        """Ask it to end, after the parts beside it; returns its exit code."""
        self.apart.end()
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self._wait(seconds)


def cli(*arguments: str, env: dict[str, str], seconds: float = 60, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `iii-stack` once."""
    return subprocess.run(
        [COMMAND, *arguments], env=env, capture_output=True, text=True, timeout=seconds, check=False, **options
    )


def inside(*arguments: str, env: dict[str, str], input: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run `iii-stack` once in this process, which has paid for the imports already."""
    from iii_stack.cli import run

    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, env, clear=True),
        mock.patch.object(sys, "stdin", io.StringIO(input or "")),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = run(list(arguments))
    return subprocess.CompletedProcess(list(arguments), code, out.getvalue(), err.getvalue())
