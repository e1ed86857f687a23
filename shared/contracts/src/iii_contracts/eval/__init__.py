"""Contracts of the eval worker (eval 3), version 0.2.2-experimental."""

from __future__ import annotations

from iii_contracts.eval import comparison

FUNCTIONS = comparison.FUNCTIONS
"""Every declared function of eval."""
