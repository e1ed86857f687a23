"""What the tests of the page do behind its back: a worker, scripted conversations, a stack that is killed."""

from __future__ import annotations

import signal
import threading
import uuid
from pathlib import Path
from typing import Any

from iii import InitOptions, register_worker

from iii_testing.processes import StackProcess

WAIT_S = 20.0


class Gate:
    """A function that does not answer until the test lets it."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._called = threading.Event()

    def serve(self, _: Any) -> dict[str, Any]:
        self._called.set()
        assert self._open.wait(60)
        return {"opened": True}

    def called(self) -> None:
        """Return when the function was called."""
        assert self._called.wait(WAIT_S)

    def release(self) -> None:
        """Let this call and those after it answer."""
        self._open.set()

    def shut(self) -> None:
        """Hold calls from now on."""
        self._open.clear()
        self._called.clear()


class Desk:
    """A worker that the agent calls, and the hands of the test on the bus."""

    def __init__(self, stack: StackProcess) -> None:
        self.gate = Gate()
        self._worker = register_worker(stack.url, InitOptions(worker_name="desk"))
        self._worker.register_function("desk::gate", self.gate.serve, description="Waits until it may go on.")
        self._worker.register_function("desk::add", _add, description="Adds two numbers.")
        self._worker.register_function("desk::fail", _fail, description="Never works.")

    def call(self, function: str, data: Any) -> Any:
        """The answer of one call."""
        return self._worker.trigger({"function_id": function, "payload": data})

    def converse(self, message: str, *steps: list[dict[str, Any]]) -> str:
        """Start a conversation whose model plays these steps; returns its session."""
        session = f"s_{uuid.uuid4()}"
        self.call(
            "harness::send",
            {
                "session_id": session,
                "message": message,
                "model": "demo",
                "provider": "scripted",
                "session": {"title": message},
                "options": {
                    "provider_options": {"scripted": {"steps": [{"emit": step} for step in steps]}},
                    "functions": {"allow": ["desk::*"]},
                },
            },
        )
        return session

    def close(self) -> None:
        """Leave the bus."""
        self.gate.release()
        self._worker.shutdown()
        self._worker._loop.close()  # the client leaves it open


class Restartable:
    """A stack that can be killed and comes back where it was."""

    def __init__(self, data: Path, **extra: str) -> None:
        self._data, self._extra = data, extra
        self.stack = StackProcess(data, "--page-port", "0", **extra)
        self.url: str = self.stack.ready["page"]

    def kill(self) -> None:
        """End it without a word."""
        self.stack.end(signal.SIGKILL)

    def start(self) -> None:
        """Start it again on the same ports."""
        bus, page = (address.rsplit(":", 1)[1].strip("/") for address in (self.stack.url, self.url))
        self.stack = StackProcess(self._data, "--page-port", page, port=int(bus), **self._extra)


def text(said: str) -> dict[str, Any]:
    return {"text": said}


def call(function: str, payload: Any = None) -> dict[str, Any]:
    return {"call": {"function": function, "payload": payload or {}}}


def _add(data: dict[str, Any]) -> dict[str, Any]:
    return {"sum": data["a"] + data["b"]}


def _fail(_: Any) -> None:
    raise RuntimeError("the plug was pulled")
