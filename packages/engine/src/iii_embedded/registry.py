"""The live registry: workers, their names, and who owns which function (engine spec 4.3, 4.4, 4.6, 5.1).

Nothing of it is stored: workers announce everything again after each connect. The registry decides ownership and tells
the loser; it sends nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iii_contracts.spec import FunctionSpec
from iii_embedded.workers import Worker

if TYPE_CHECKING:
    from iii_embedded.local_function import LocalFunction

DEFAULT = "default"
"""The namespace of everything that names none."""


def elsewhere(namespace: str) -> str | None:
    """The namespace, or None where it is the default one and left out on the wire."""
    return None if namespace == DEFAULT else namespace


@dataclass(slots=True, eq=False)
class Function:
    """A registered function. `local` runs in this process; an `http` one cannot be called (engine spec 11)."""

    id: str
    namespace: str
    owner: Worker
    description: str | None = None
    metadata: Any = None
    request: Any = None
    response: Any = None
    http: bool = False
    local: LocalFunction | None = None
    spec: FunctionSpec | None = None

    @property
    def worker_name(self) -> str:
        """The name of its owner, or the first segment of its id."""
        return self.owner.name or self.id.split("::", 1)[0]

    @property
    def request_schema(self) -> Any:
        """The schema of its request as it was registered."""
        return self.request if self.spec is None else self.spec.request_schema

    @property
    def response_schema(self) -> Any:
        """The schema of its result as it was registered."""
        return self.response if self.spec is None else self.spec.response_schema

    @property
    def internal(self) -> bool:
        """True when its registration says `metadata.internal: true`."""
        return isinstance(self.metadata, dict) and self.metadata.get("internal") is True  # pyright: ignore[reportUnknownMemberType]


class Registry:
    """Workers by id and name, functions by namespace and id. `changed` is called when the set of functions did."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.workers: dict[str, Worker] = {}
        self.functions: dict[tuple[str, str], Function] = {}
        self._names: dict[tuple[str, str], Worker] = {}
        self._changed = changed

    def find(self, namespace: str, function_id: str) -> Function | None:
        """The function of that exact address."""
        return self.functions.get((namespace, function_id))

    def namespaces_of(self, function_id: str) -> list[str]:
        """Where a function of that id lives, sorted."""
        return sorted(namespace for namespace, id_ in self.functions if id_ == function_id)

    def functions_of(self, worker: Worker) -> Iterator[Function]:
        """What a worker owns."""
        return (function for function in self.functions.values() if function.owner is worker)

    def named(self, namespace: str, name: str) -> Worker | None:
        """The worker that holds a name."""
        return self._names.get((namespace, name))

    def claim(self, worker: Worker, name: str) -> Worker | None:
        """Give `worker` the name in its namespace; the other holder when there is a live one."""
        holder = self._names.get((worker.scope, name))
        if holder is not None and holder is not worker and not holder.gone:
            return holder
        self._names[worker.scope, name] = worker
        worker.name = name
        worker.names.add(name)
        return None

    def add(self, function: Function) -> None:
        """Register, or replace one's own; a function of somebody else, or a reserved id, is refused."""
        key = (function.namespace, function.id)
        holder = self.functions.get(key)
        if function.id.startswith("engine::") and function.namespace != DEFAULT:
            function.owner.refuse_function(function.namespace, function.id, "")
        elif holder is not None and holder.owner is not function.owner and not holder.owner.gone:
            owner_id = "" if holder.owner.builtin else holder.owner.id
            function.owner.refuse_function(function.namespace, function.id, owner_id)
        else:
            self.functions[key] = function
            self._changed()

    def remove(self, worker: Worker, function_id: str) -> None:
        """Take a function back; nobody but its owner can."""
        function = self.functions.get((worker.scope, function_id))
        if function is not None and function.owner is worker:
            del self.functions[function.namespace, function_id]
            self._changed()

    def forget(self, worker: Worker) -> None:
        """A worker is gone, and with it its functions and names."""
        self.workers.pop(worker.id, None)
        for key in [key for key, function in self.functions.items() if function.owner is worker]:
            del self.functions[key]
        for name in worker.names:
            if self._names.get((worker.scope, name)) is worker:
                del self._names[worker.scope, name]
        self._changed()
