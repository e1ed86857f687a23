"""How functions, workers, trigger types and bindings are shown (engine spec 12): rows of listings and details."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from iii_embedded.registry import Function, Registry
from iii_embedded.triggers import BoundTrigger, TriggerTable, TriggerType
from iii_embedded.workers import Worker
from iii_kit.encoding import decode, encode

SUMMARY_LENGTH = 80
"""Characters of a config in a row."""

VERSION = version("iii-embedded")


def function_summary(function: Function) -> dict[str, Any]:
    """The row of a function."""
    row: dict[str, Any] = {
        "function_id": function.id,
        "namespace": function.namespace,
        "worker_name": function.worker_name,
    }
    if function.description is not None:
        row["description"] = function.description
    if function.metadata is not None:
        row["metadata"] = function.metadata
    return row


def function_detail(function: Function, bindings: Iterable[BoundTrigger]) -> dict[str, Any]:
    """Everything about a function; `bindings` are those that fire it."""
    detail = function_summary(function)
    if function.request_schema is not None:
        detail["request_schema"] = function.request_schema
    if function.response_schema is not None:
        detail["response_schema"] = function.response_schema
    detail["registered_triggers"] = [
        {"id": bound.id, "trigger_type": bound.trigger_type, "config": decode(bound.config)}
        for bound in sorted(bindings, key=lambda bound: bound.id.encode())
    ]
    return detail


def worker_summary(worker: Worker, function_count: int) -> dict[str, Any]:
    """The row of a worker: one inside the engine, one of this process, or one at a socket."""
    facts = worker.facts
    row: dict[str, Any] = {
        "name": worker.name,
        "description": facts.description,
        "version": facts.version,
        "id": worker.id,
        "namespace": worker.scope,
        "runtime": facts.runtime,
        "os": facts.os,
        "status": "connected",
        "function_count": function_count,
        "connected_at_ms": worker.connected_at_ms,
        "active_invocations": worker.open_calls,
        "isolation": facts.isolation,
        "ip_address": facts.ip_address,
    }
    if worker.builtin:
        inside = {"version": VERSION, "runtime": "engine", "status": "available", "isolation": "in-process"}
        row.update(inside, active_invocations=0)
    return row


def worker_detail(worker: Worker, function_count: int) -> dict[str, Any]:
    """A worker with what its row leaves out."""
    detail = {**worker_summary(worker, function_count), "internal": worker.builtin}
    if worker.facts.pid is not None:
        detail["pid"] = worker.facts.pid
    return detail


def type_summary(type_: TriggerType) -> dict[str, Any]:
    """The row of a trigger type."""
    return {
        "id": type_.id,
        "namespace": type_.namespace,
        "worker_name": type_.provider.name or type_.id.split("::", 1)[0],
        "description": type_.description,
    }


def type_detail(type_: TriggerType, instances: int) -> dict[str, Any]:
    """Everything about a trigger type."""
    detail = type_summary(type_)
    if type_.config_schema is not None:
        detail["configuration_schema"] = type_.config_schema
    if type_.payload_schema is not None:
        detail["request_schema"] = type_.payload_schema
    detail["instance_count"] = instances
    return detail


def binding_row(binding: BoundTrigger, registry: Registry) -> dict[str, Any]:
    """The row of a binding, without the summary of its config."""
    function = registry.find(binding.namespace, binding.function_id)
    return {
        "id": binding.id,
        "trigger_type": binding.trigger_type,
        "function_id": binding.function_id,
        "worker_name": binding.function_id.split("::", 1)[0] if function is None else function.worker_name,
        "config": decode(binding.config),
    }


def binding_summary(binding: BoundTrigger, registry: Registry) -> dict[str, Any]:
    """The row of a binding."""
    row = binding_row(binding, registry)
    text = encode(row["config"]).decode()
    row["config_summary"] = text if len(text) <= SUMMARY_LENGTH else text[:SUMMARY_LENGTH] + "…"
    return row


def instances_of(type_id: str, triggers: TriggerTable) -> int:
    """Active bindings on a type id, in all namespaces."""
    return sum(bound.trigger_type == type_id for bound in triggers.active())


def describe_this_process(worker: Worker) -> None:
    """A worker of this process looks like any other: the language, system and process it runs in."""
    worker.facts.runtime = "python"
    worker.facts.version = VERSION
    worker.facts.os = platform.system().lower()
    worker.facts.pid = os.getpid()
