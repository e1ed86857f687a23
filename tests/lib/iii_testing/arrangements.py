"""Which parts of the stack are processes of their own, and those processes (design, "Separate workers")."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(sys.executable).parent
READY_S = 60.0


class Arrangement(Enum):
    """The parts that run apart; the rest is the stack."""

    TOGETHER = ()
    HARNESS = ("harness", "eval")
    SIBLINGS = ("siblings", "harness", "eval")
    QUEUE = ("queue", "siblings", "harness", "eval")

    @property
    def apart(self) -> tuple[str, ...]:
        return self.value

    @property
    def options(self) -> tuple[str, ...]:
        """What the stack is told to leave out."""
        return ("--without", ",".join(self.apart)) if self.apart else ()


def arrangements(*quick: Arrangement) -> Any:
    """The parameters of a test that holds in every arrangement: `quick` ones always, the others in the long suites."""
    return [
        pytest.param(one, id=one.name.lower(), marks=() if one in quick else pytest.mark.slow) for one in Arrangement
    ]


class PartProcess:
    """One part beside a running engine; it is started again over its own directory as often as one likes."""

    def __init__(self, part: str, url: str, data: Path, env: dict[str, str]) -> None:
        self.part = part
        self._url = url
        self._env = {**env, "III_LOG_LEVEL": "info"}
        self._data = data / "apart" / part
        self._log = data / f"{part}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, ready: bool = True) -> None:
        """Start it, and wait until it works unless that is told not to matter."""
        assert self._process is None
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._log.write_bytes(b"")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, env=self._env, stdout=log, stderr=log)
        if ready:
            self.ready()

    def ready(self) -> None:
        """Wait until it says that it works."""
        assert self._process is not None
        deadline = time.monotonic() + READY_S
        while not self.is_ready:
            if self._process.poll() is not None:
                raise AssertionError(f"{self.part} ended: {self._log.read_text()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.part} is not ready: {self._log.read_text()}")
            time.sleep(0.01)

    @property
    def log(self) -> str:
        """All that it has said."""
        return self._log.read_text()

    @property
    def is_ready(self) -> bool:
        return '"event": "ready"' in self.log or '"ready": true' in self.log

    def send(self, number: signal.Signals) -> None:
        """Send it a signal and go on."""
        assert self._process is not None
        self._process.send_signal(number)

    def comes_up(self) -> bool:
        """Wait until it works (True) or ends (False)."""
        assert self._process is not None
        while not self.is_ready:
            if self._process.poll() is not None:
                return False
            time.sleep(0.01)
        return True

    def successor(self) -> PartProcess:
        """Another process of the same part."""
        made = PartProcess(self.part, self._url, self._log.parent, self._env)
        made._data, made._log = self._data, self._log.with_suffix(".next.log")
        return made

    def kill(self) -> None:
        """Kill it, wherever it is."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def end(self, seconds: float = 20) -> int:
        """Ask it to end; returns the exit code."""
        assert self._process is not None
        self._process.terminate()
        code = self._process.wait(seconds)
        self._process = None
        return code

    def wait(self, seconds: float = 60) -> tuple[int, str]:
        """Wait until it ends by itself; its exit code and all it has said."""
        assert self._process is not None
        code = self._process.wait(seconds)
        self._process = None
        return code, self._log.read_text()

    @property
    def runs(self) -> bool:
        return self._process is not None

    @property
    def _command(self) -> list[str]:
        if self.part in ("harness", "eval"):
            return [str(SCRIPTS / f"iii-{self.part}"), "--url", self._url]
        grace = ("--grace", "0") if self.part == "siblings" else ()
        where = ("--engine", self._url, "--data-dir", str(self._data))
        return [str(SCRIPTS / "iii-stack"), self.part, "--json", *where, *grace]


class Apart:
    """The processes of one arrangement, beside the engine at `url`."""

    def __init__(self, arrangement: Arrangement, url: str, data: Path, env: dict[str, str]) -> None:
        self.parts = {part: PartProcess(part, url, data, env) for part in arrangement.apart}

    def start(self) -> None:
        """Start them all at once, then wait for all: the order does not matter."""
        for part in self.parts.values():
            part.start(ready=False)
        for part in self.parts.values():
            part.ready()

    def end(self) -> None:
        """End those that run."""
        for part in reversed(self.parts.values()):
            if part.runs:
                part.send(signal.SIGCONT)
                assert part.end() == 0, part.part


@contextmanager
def apart(arrangement: Arrangement, url: str, data: Path, env: dict[str, str]) -> Iterator[Apart]:
    """The processes of an arrangement, from start to end."""
    made = Apart(arrangement, url, data, env)
    try:
        made.start()
        yield made
    finally:
        made.end()


__all__ = ["Apart", "Arrangement", "PartProcess", "apart", "arrangements"]
