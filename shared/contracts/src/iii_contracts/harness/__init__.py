"""Contracts of the harness worker: every function and trigger type that it serves (harness-loop 3, 20)."""

from iii_contracts.harness import context, events, metrics, parked, send, status, turn, upkeep

FUNCTIONS = (
    *send.FUNCTIONS,
    *status.FUNCTIONS,
    *turn.FUNCTIONS,
    *parked.FUNCTIONS,
    *metrics.FUNCTIONS,
    *context.FUNCTIONS,
    *upkeep.FUNCTIONS,
)
"""Every function of the harness."""

TRIGGERS = events.TRIGGERS
"""Every trigger type that the harness emits."""
