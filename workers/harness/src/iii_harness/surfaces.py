"""What one step offers the model beside the messages (harness-loop 6.3 steps 7-10, harness-agents 3).

Pure of its inputs: the turn record, the active path, the registry's snapshot and one switch of the configuration.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

from iii_harness.catalog import INFO, Snapshot
from iii_harness.contracts_digest import permitted_digest
from iii_harness.gate import CallGate
from iii_harness.policy import CompiledPolicy, compiled
from iii_harness.ports import Item, Message, Surface
from iii_harness.prompt.identity import joined
from iii_harness.prompt.notices import context_notice, in_window, registry_notice, told, told_notices
from iii_harness.prompt.sections import sectioned
from iii_harness.prompt.session_context import session_context
from iii_harness.record import TurnRecord
from iii_harness.tools import offered

POLICIES: Final = 256
"""Policies whose digests one snapshot remembers."""


class StepSurfaces:
    """Maker of surfaces; `snapshot` and `sections_enabled` are read anew for each, once the registry is `settled`."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        sections_enabled: Callable[[], bool],
        settled: Callable[[], Awaitable[None]],
    ) -> None:
        self._settled = settled
        self._snapshot = snapshot
        self._sections_enabled = sections_enabled

    def gate(self, record: TurnRecord) -> CallGate:
        """The policy alone, for a step that goes on after its generation."""
        return CallGate(compiled(record.options.functions), self._snapshot())

    def basis(self) -> tuple[object, ...]:
        """The registry of the moment and the switch."""
        return self._snapshot(), self._sections_enabled()

    async def of_step(self, record: TurnRecord, path: Sequence[Item]) -> Surface:
        """The surface of `record.step`, given the active path as loaded for it."""
        await self._settled()
        snapshot = self._snapshot()
        gate = CallGate(compiled(record.options.functions), snapshot, lambda: messages(path))
        current = session_context(record.session_id, record.options, gate.policy)
        seen = told(path)
        stable = joined(record.options.system_prompt)
        prompt = joined(stable, current if seen.frozen is None else seen.frozen)
        sections = sectioned(prompt, stable, enabled=self._sections_enabled())
        acknowledged = permitted(snapshot, gate.policy) if snapshot.known else None
        changed = acknowledged is not None and registry_notice(
            record.functions_acknowledged,
            acknowledged,
            may_read=gate.allows(INFO) and snapshot.has(INFO),
        )
        return Surface(
            gate=gate,
            tools=offered(gate, snapshot, record.dispatch_only_functions),
            system_prompt=prompt,
            system_sections=sections.sections,
            cache_intent=sections.cache_intent,
            sections_fallback=sections.fallback,
            runtime_context=current if seen.frozen is None else None,
            notices=told_notices(changed or None, context_notice(seen, current)),
            acknowledged=acknowledged,
        )


def messages(path: Sequence[Item]) -> Iterator[Message]:
    """The messages of a path that no compaction has summarised."""
    return (item.message for item in in_window(path) if item.message is not None)


def permitted(snapshot: Snapshot, policy: CompiledPolicy) -> list[str]:
    """Digests of the functions that a policy permits, sorted: what a step acknowledges (4.2)."""
    known = snapshot.permitted.get(policy.digest)
    if known is None:
        functions = (f for f in snapshot.functions.values() if policy.allows(f.function_id))
        known = sorted({permitted_digest(f.function_id, f.contract) for f in functions})
        if len(snapshot.permitted) >= POLICIES:
            snapshot.permitted.clear()
        snapshot.permitted[policy.digest] = known
    return known
