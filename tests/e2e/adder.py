"""A worker of somebody else: plain iii-sdk, two functions, in a process of its own."""

from __future__ import annotations

import sys
import threading

from iii import InitOptions, register_worker


def add(data: dict) -> dict:
    print("called", flush=True)
    return {"sum": data["a"] + data["b"]}


def wait(data: dict) -> None:
    print("waiting", flush=True)
    threading.Event().wait(60)


worker = register_worker(sys.argv[1], InitOptions(worker_name="demo"))
worker.register_function(
    "demo::add",
    add,
    description="Add two numbers.",
    request_format={
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
)
worker.register_function("demo::wait", wait, description="Take a minute.", request_format={"type": "object"})
# Frames of one connection keep their order: an answered call says that the engine has what came before it.
worker.trigger({"function_id": "engine::workers::list", "payload": {}})
print("registered", flush=True)
threading.Event().wait()
