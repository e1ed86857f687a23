"""A worker of somebody else whose every start of a call is on disk before the call goes on.

Arguments: the URL of the bus, and the file to which starts are appended. It outlives stacks that are killed: the SDK
connects again.
"""

from __future__ import annotations

import os
import sys
import threading

from iii import InitOptions, register_worker
from iii_helpers.observability import ReconnectionConfig

starts = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def record(data: dict) -> dict:
    os.write(starts, f"{data['n']}\n".encode())
    os.fsync(starts)
    threading.Event().wait(data["hold_ms"] / 1000)
    return {"recorded": data["n"]}


quickly = ReconnectionConfig(initial_delay_ms=10, max_delay_ms=40)
worker = register_worker(sys.argv[1], InitOptions(worker_name="recorder", reconnection_config=quickly))
worker.register_function("demo::record", record, description="Note a number.", request_format={"type": "object"})
print("registered", flush=True)
threading.Event().wait()
