"""The unmodified SDK against the engine in a thread of its own: register, call, be called, bind, provide."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from iii import InitOptions, InvocationError, TelemetryOptions, TriggerAction, register_worker
from iii.trigger import TriggerConfig, TriggerHandler

from iii_contracts.spec import FunctionSpec
from iii_kit.bus import Invocation
from iii_testing.embedded import Embedded, embedded

ANY = FunctionSpec("t::local", "of a test", None, None, "t/invalid")


@contextmanager
def running() -> Iterator[tuple[Embedded, asyncio.AbstractEventLoop]]:
    """An engine in a thread and loop of its own."""
    ready, box = threading.Event(), []
    over: list[Any] = []

    async def serve() -> None:
        stop = asyncio.Event()
        async with embedded(listening=True) as stack:

            async def local(data: Any, _: Invocation) -> Any:
                return {"local": data}

            stack.attach("local").serve(ANY, local)
            box.append(stack)
            over.extend((asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(20)
    try:
        yield box[0], over[0]
    finally:
        over[0].call_soon_threadsafe(over[1].set)
        thread.join()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("III_OTEL_ENABLED", "false")
    with running() as (stack, _):
        clients: list[Any] = []

        def make(name: str) -> Any:
            options = InitOptions(
                worker_name=name, enable_metrics_reporting=False, telemetry=TelemetryOptions(), otel={"enabled": False}
            )
            clients.append(register_worker(stack.url, options))
            return clients[-1]

        yield make
        for each in clients:
            each.shutdown()
            each._thread.join(10)
            each._loop.close()


class Provider(TriggerHandler[Any]):
    """Keeps the bindings it was told of."""

    def __init__(self) -> None:
        self.bound: dict[str, TriggerConfig] = {}
        self.news = threading.Condition()

    async def register_trigger(self, config: TriggerConfig) -> None:
        with self.news:
            self.bound[config.id] = config
            self.news.notify_all()

    async def unregister_trigger(self, config: TriggerConfig) -> None:
        with self.news:
            self.bound.pop(config.id, None)
            self.news.notify_all()

    def wait(self, count: int) -> list[TriggerConfig]:
        with self.news:
            assert self.news.wait_for(lambda: len(self.bound) == count, 10)
            return list(self.bound.values())


def request(function_id: str, payload: Any, **more: Any) -> dict[str, Any]:
    return {"function_id": function_id, "payload": payload, **more}


@pytest.mark.requirement("engine.sdk")
def test_a_plain_sdk_worker_registers_calls_is_called_binds_and_provides(client: Any) -> None:
    provider, first, second = Provider(), client("first"), client("second")

    async def add(data: dict[str, Any]) -> Any:
        return {"sum": data["a"] + data["b"], "caller": data["_caller_worker_id"]}

    def fail(data: Any) -> Any:
        raise ValueError("billing/declined: no funds")

    first.register_function("demo::add", add, description="Adds.", request_format={"type": "object"})
    first.register_function("demo::fail", fail)
    first.register_trigger_type({"id": "demo::ticked", "description": "Ticks."}, provider)
    first.trigger(request("engine::functions::list", {}))

    assert second.trigger(request("demo::add", {"a": 2, "b": 3})) == {"sum": 5, "caller": second.worker_id}
    assert second.trigger(request("t::local", {"x": 1})) == {"local": {"x": 1}}
    with pytest.raises(InvocationError) as caught:
        second.trigger(request("demo::fail", {}))
    assert (caught.value.code, caught.value.message) == ("invocation_failed", "billing/declined: no funds")
    detail = second.trigger(request("engine::functions::info", {"function_id": "demo::add"}))
    assert (detail["worker_name"], detail["description"]) == ("first", "Adds.")

    got: list[Any] = []
    heard = threading.Event()

    def listen(data: Any) -> None:
        got.append(data["n"])
        heard.set()

    second.register_function("demo::listen", listen)
    handle = second.register_trigger({"type": "demo::ticked", "function_id": "demo::listen", "config": {"every": 1}})
    (bound,) = provider.wait(1)
    assert bound.config == {"every": 1}
    first.trigger(request(bound.function_id, {"n": 7}, action=TriggerAction.Void()))
    assert heard.wait(10) and got == [7]
    handle.unregister()
    provider.wait(0)
    receipt = second.trigger(request("demo::listen", {"n": 8}, action=TriggerAction.Enqueue(queue="default")))
    assert uuid.UUID(receipt["messageReceiptId"])


@pytest.mark.requirement("engine.frames.broken-result")
@pytest.mark.parametrize("result", [float("nan"), {"deep": [float("-inf")]}, "\ud800", {"large": 10**400}])
def test_a_result_that_is_no_json_fails_its_call_at_once(client: Any, result: Any) -> None:
    worker, caller = client("odd"), client("caller")
    worker.register_function("demo::odd", lambda _: result)
    worker.trigger(request("engine::functions::list", {}))
    began = time.monotonic()
    with pytest.raises(InvocationError) as caught:
        caller.trigger(request("demo::odd", {}))
    assert caught.value.code == "invocation_failed"
    assert "demo::odd answered with what is not JSON" in caught.value.message
    assert time.monotonic() - began < 20
