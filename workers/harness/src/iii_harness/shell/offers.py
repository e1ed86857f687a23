"""What the steps of a turn offer the model beside its messages (harness-loop 6.3 steps 7-10, 7.3).

It is the same from step to step until its options, the registry or what the transcript tells of it changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from iii_harness.ports import Surface, Surfaces
from iii_harness.record import TurnRecord

if TYPE_CHECKING:
    from iii_harness.shell.paths import Path


class Offer(msgspec.Struct, frozen=True):
    """A surface, and the router's request that carries it: without its id and its messages."""

    basis: tuple[object, ...]
    """Everything that the surface was made of."""
    surface: Surface
    request: dict[str, Any]


async def offer_of(surfaces: Surfaces, record: TurnRecord, path: Path) -> Offer:
    """The offer of `record.step`: that of the step before while its basis is the same."""
    basis = (
        record.options,
        record.functions_acknowledged,
        record.dispatch_only_functions,
        path.customs,
        *surfaces.basis(),
    )
    offer = path.offer
    if offer is None or offer.basis != basis:
        surface = await surfaces.of_step(record, path)
        offer = path.offer = Offer(basis, surface, _request(record, surface))
    return offer


def _request(record: TurnRecord, surface: Surface) -> dict[str, Any]:
    options = record.options
    request: dict[str, Any] = {
        "session_id": record.session_id,
        "model": options.model,
        "tools": surface.tools,
    }
    optional = {
        "provider": options.provider,
        "system_prompt": surface.system_prompt,
        "max_output_tokens": options.max_output_tokens,
        "thinking_level": options.thinking_level,
        "provider_options": options.provider_options,
        "system_sections": surface.system_sections,
        "cache_intent": surface.cache_intent,
    }
    request.update((name, value) for name, value in optional.items() if value is not None)
    return request
