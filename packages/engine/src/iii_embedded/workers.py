"""A worker of the engine: what the registry knows of it and what the engine may ask of it (engine spec 1, 12.2).

`Connection` is a worker at the end of a socket, `LocalWorker` one in this process; routing and bindings see no
difference.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iii_embedded.calls import Answer, Failure, Request

if TYPE_CHECKING:
    from iii_embedded.registry import Function
    from iii_embedded.triggers import BoundTrigger

Acknowledge = Callable[[Failure | None], None]
"""How a provider answers a binding: None accepts it. May be called again: a later failure parks the binding."""


@dataclass(slots=True)
class WorkerFacts:
    """What a worker said about itself in its announcement (engine spec 12.5)."""

    runtime: str | None = None
    version: str | None = None
    os: str | None = None
    pid: int | None = None
    isolation: str | None = None
    description: str | None = None
    telemetry: Any = None
    ip_address: str | None = None


@dataclass(eq=False)
class Worker(ABC):
    """One live worker. `name` is its current one; `names` are all it holds until it leaves (engine spec 4.3)."""

    id: str
    connected_at_ms: int
    namespace: str | None = None
    name: str | None = None
    builtin: bool = False
    facts: WorkerFacts = field(default_factory=WorkerFacts)
    names: set[str] = field(default_factory=set[str])
    gone: bool = False
    last_write: asyncio.Future[Any] | None = None
    """The newest write of this caller that was handed to the store: its later reads wait for it."""

    @property
    def scope(self) -> str:
        """The namespace, `default` while it is not known."""
        return self.namespace or "default"

    @property
    def caller_id(self) -> str | None:
        """What `_caller_worker_id` says in this worker's calls; the engine's own workers have none."""
        return None if self.builtin else self.id

    @property
    @abstractmethod
    def open_calls(self) -> int:
        """Calls that it executes plus calls that it has made."""

    @abstractmethod
    def execute(self, function: Function, request: Request, answer: Answer | None) -> None:
        """Run one of its functions; `answer` is called once unless it is None. Never raises, never waits."""

    @abstractmethod
    def offer(self, binding: BoundTrigger, acknowledge: Acknowledge) -> None:
        """Tell it, as the provider of a trigger type, of a binding."""

    @abstractmethod
    def withdraw(self, binding: BoundTrigger) -> None:
        """Tell it, as the provider of a trigger type, that a binding is gone."""

    @abstractmethod
    def refuse_binding(self, binding: BoundTrigger, failure: Failure) -> None:
        """Tell it, as the one who bound, that its binding was refused."""

    @abstractmethod
    def refuse_function(self, namespace: str, function_id: str, owner_id: str) -> None:
        """Tell it that a function id is not its to register (engine spec 4.4)."""

    @abstractmethod
    def ended(self) -> None:
        """It is gone: what it executes fails for those who wait for it."""
