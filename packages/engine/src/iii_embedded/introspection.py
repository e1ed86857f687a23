"""The functions by which the engine tells about itself, and binding by function (engine spec 9.4, 12)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from iii_contracts.engine import functions as of_functions
from iii_contracts.engine import triggers as of_triggers
from iii_contracts.engine import workers as of_workers
from iii_embedded.frames import MAX_KEPT_DEPTH
from iii_embedded.registry import DEFAULT, Function
from iii_embedded.triggers import BoundTrigger, TriggerType
from iii_embedded.views import (
    binding_row,
    binding_summary,
    function_detail,
    function_summary,
    instances_of,
    type_detail,
    type_summary,
    worker_detail,
    worker_summary,
)
from iii_kit.bus import Bus, Invocation, Json
from iii_kit.encoding import decode, encode, nested_deeper_than
from iii_kit.errors import BusError

if TYPE_CHECKING:
    from iii_embedded.engine import Engine

T = TypeVar("T")


class Introspection:
    """Serves sections 12 and 9.4 over one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._registry = engine.registry
        self._triggers = engine.triggers

    def install(self, bus: Bus) -> None:
        """Serve every function on the engine's own bus."""
        bus.serve(of_functions.FUNCTIONS_LIST, self._functions_list)
        bus.serve(of_functions.FUNCTIONS_INFO, self._functions_info)
        bus.serve(of_workers.WORKERS_LIST, self._workers_list)
        bus.serve(of_workers.WORKERS_INFO, self._workers_info)
        bus.serve(of_workers.WORKERS_REGISTER, self._workers_register)
        bus.serve(of_triggers.TRIGGERS_LIST, self._triggers_list)
        bus.serve(of_triggers.TRIGGERS_INFO, self._triggers_info)
        bus.serve(of_triggers.REGISTERED_TRIGGERS_LIST, self._bindings_list)
        bus.serve(of_triggers.REGISTERED_TRIGGERS_INFO, self._bindings_info)
        bus.serve(of_triggers.REGISTER_TRIGGER, self._register_trigger)
        bus.serve(of_triggers.UNREGISTER_TRIGGER, self._unregister_trigger)

    # -- functions

    async def _functions_list(self, request: of_functions.FunctionsListRequest, _: Invocation) -> Json:
        owners = {*(request.workers or ()), *((request.worker,) if request.worker is not None else ())}
        found = [
            function
            for function in self._registry.functions.values()
            if (request.include_internal or not _is_hidden(function))
            and (not request.prefix or function.id.startswith(request.prefix))
            and (not owners or function.worker_name in owners)
        ]
        ranked = ((_rank(request.search, function), function) for function in found)
        kept = sorted(
            ((rank, function) for rank, function in ranked if rank is not None),
            key=lambda pair: (pair[0], pair[1].id.encode(), pair[1].namespace.encode()),
        )
        return {"functions": [function_summary(function) for _, function in kept]}

    async def _functions_info(self, request: of_functions.FunctionsInfoRequest, _: Invocation) -> Json:
        ids = request.function_ids
        if (request.function_id is None) == (ids is None):
            raise BusError("INVALID_ARGUMENTS", "give exactly one of `function_id` and `function_ids`")
        if ids is None:
            return self._detail(self._function(request.function_id or "", request.namespace))
        distinct = list(dict.fromkeys(ids))
        if not 1 <= len(distinct) <= of_functions.MAX_BATCH:
            limit = of_functions.MAX_BATCH
            raise BusError("INVALID_ARGUMENTS", f"`function_ids` takes 1 to {limit} distinct ids, got {len(distinct)}")
        return {"functions": [self._detail_or_problem(id_, request.namespace) for id_ in distinct]}

    def _detail_or_problem(self, function_id: str, namespace: str | None) -> Json:
        try:
            return self._detail(self._function(function_id, namespace))
        except BusError:
            return {"function_id": function_id, "error": "not_found"}

    def _detail(self, function: Function) -> Json:
        return function_detail(function, self._bindings_on([function]))

    def _function(self, function_id: str, namespace: str | None) -> Function:
        found = {ns: function for (ns, id_), function in self._registry.functions.items() if id_ == function_id}
        return _pick(found, namespace, f"Function '{function_id}' is not registered", "registered")

    def _bindings_on(self, functions: Iterable[Function]) -> list[BoundTrigger]:
        targets = {(function.namespace, function.id) for function in functions}
        return [bound for bound in self._triggers.active() if (bound.namespace, bound.function_id) in targets]

    # -- workers

    async def _workers_list(self, request: of_workers.WorkersListRequest, _: Invocation) -> Json:
        counts = self._function_counts()
        rows = [
            worker_summary(worker, counts.get(worker.id, 0))
            for worker in self._registry.workers.values()
            if worker.builtin or worker.facts.pid is not None
        ]
        search = (request.search or "").lower()
        kept = [
            row
            for row in rows
            if search in (row["name"] or "").lower()
            and request.runtime in (None, row["runtime"])
            and request.status in (None, row["status"])
        ]
        return {"workers": sorted(kept, key=lambda row: ((row["name"] or "").encode(), row["namespace"], row["id"]))}

    async def _workers_info(self, request: of_workers.WorkersInfoRequest, _: Invocation) -> Json:
        found = {worker.scope: worker for worker in self._registry.workers.values() if worker.name == request.name}
        worker = _pick(found, request.namespace, f"Worker '{request.name}' is not connected", "connected")
        functions = sorted(self._registry.functions_of(worker), key=lambda function: function.id.encode())
        types = sorted(
            (type_ for type_ in self._triggers.types.values() if type_.provider is worker),
            key=lambda type_: type_.id.encode(),
        )
        return {
            "worker": worker_detail(worker, len(functions)),
            "functions": [function_summary(function) for function in functions],
            "trigger_types": [type_summary(type_) for type_ in types],
            "registered_triggers": self._rows(self._bindings_on(functions)),
        }

    async def _workers_register(self, request: of_workers.WorkersRegisterRequest, call: Invocation) -> Json:
        worker = None if call.caller is None else self._registry.workers.get(call.caller)
        self._engine.lifecycle.announce(worker, request)
        return {"success": True}

    def _function_counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for function in self._registry.functions.values():
            counts[function.owner.id] = counts.get(function.owner.id, 0) + 1
        return counts

    # -- trigger types and bindings

    async def _triggers_list(self, request: of_triggers.TriggersListRequest, _: Invocation) -> Json:
        search = (request.search or "").lower()
        rows = [
            row
            for row in map(type_summary, self._triggers.types.values())
            if (request.include_internal or not row["id"].startswith("engine::"))
            and (not request.prefix or row["id"].startswith(request.prefix))
            and request.worker in (None, row["worker_name"])
            and (search in row["id"].lower() or search in row["description"].lower())
        ]
        return {"triggers": sorted(rows, key=lambda row: (row["id"].encode(), row["namespace"]))}

    async def _triggers_info(self, request: of_triggers.TriggersInfoRequest, _: Invocation) -> Json:
        type_ = self._triggers.types.get((request.namespace or DEFAULT, request.id))
        if type_ is None:
            found = {ns: type_ for (ns, id_), type_ in self._triggers.types.items() if id_ == request.id}
            problem = f"Trigger type '{request.id}' is not registered"
            type_ = _pick(found, request.namespace or DEFAULT, problem, "registered")
        return self._type_detail(type_)

    async def _bindings_list(self, request: of_triggers.RegisteredTriggersListRequest, _: Invocation) -> Json:
        search = (request.search or "").lower()
        rows = [
            row
            for row in self._rows(self._triggers.active())
            if (request.include_internal or not row["function_id"].startswith("engine::"))
            and request.trigger_type in (None, row["trigger_type"])
            and request.function_id in (None, row["function_id"])
            and request.worker in (None, row["worker_name"])
            and any(search in row[field].lower() for field in ("id", "trigger_type", "function_id"))
        ]
        return {"registered_triggers": rows}

    async def _bindings_info(self, request: of_triggers.RegisteredTriggersInfoRequest, _: Invocation) -> Json:
        binding = self._triggers.find(request.id)
        if binding is None:
            raise BusError("NOT_FOUND", f"Trigger '{request.id}' is not registered.")
        row = binding_row(binding, self._registry)
        if binding.metadata is not None:
            row["metadata"] = decode(binding.metadata)
        type_ = None if binding.served_by is None else self._triggers.types.get(binding.served_by)
        function = self._registry.find(binding.namespace, binding.function_id)
        row["trigger"] = None if type_ is None else self._type_detail(type_)
        row["function"] = None if function is None else self._detail(function)
        return row

    async def _register_trigger(self, request: of_triggers.RegisterTriggerRequest, _: Invocation) -> Json:
        if request.trigger_namespace is not None and not request.trigger_namespace.strip():
            raise BusError("INVALID_NAMESPACE", "trigger_namespace must not be blank")
        if nested_deeper_than([request.config, request.metadata], MAX_KEPT_DEPTH):
            raise BusError("trigger_registration_failed", f"config nested deeper than {MAX_KEPT_DEPTH} levels")
        metadata = None if request.metadata is None else encode(request.metadata)
        id_ = await self._triggers.bind_by_function(
            request.trigger_type, request.function_id, encode(request.config), metadata, request.trigger_namespace
        )
        return {"id": id_}

    async def _unregister_trigger(self, request: of_triggers.UnregisterTriggerRequest, _: Invocation) -> Json:
        return {"removed": self._triggers.unbind(request.id)}

    def _rows(self, bindings: Iterable[BoundTrigger]) -> list[dict[str, Any]]:
        ordered = sorted(bindings, key=lambda bound: bound.id.encode())
        return [binding_summary(bound, self._registry) for bound in ordered]

    def _type_detail(self, type_: TriggerType) -> Json:
        return type_detail(type_, instances_of(type_.id, self._triggers))


def _is_hidden(function: Function) -> bool:
    engines = function.id.startswith("engine::") and not function.id.startswith("engine::queue::")
    return engines or function.internal


def _rank(search: str | None, function: Function) -> int | None:
    """Where a function stands in the results of a search; None when it is not among them."""
    if not search:
        return 0
    text, id_ = search.lower(), function.id.lower()
    if id_.startswith(text) or text in id_.split("::"):
        return 0
    if text in id_:
        return 1
    return 2 if text in (function.description or "").lower() else None


def _pick(found: dict[str, T], namespace: str | None, problem: str, verb: str) -> T:
    """The entry of a given namespace, else of default, else the only one; the error names where there are some."""
    if namespace is not None:
        if namespace in found:
            return found[namespace]
        if found:
            problem = f"{problem} in the requested namespace; it is {verb} in namespace(s): {', '.join(sorted(found))}"
    elif DEFAULT in found:
        return found[DEFAULT]
    elif len(found) == 1:
        return next(iter(found.values()))
    elif found:
        problem = f"{problem} in namespace {DEFAULT}; it is {verb} in namespace(s): {', '.join(sorted(found))}"
    raise BusError("NOT_FOUND", f"{problem}.")
