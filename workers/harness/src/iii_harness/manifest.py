"""What `iii-harness --manifest` prints (harness-loop 1.2)."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final

from iii_contracts.harness.configuration import defaults

NAME: Final = "harness"

DESCRIPTION: Final = "Durable turn loop: a model and a few workers become an agent that survives crashes"

TARGETS: Final = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
)
"""Platforms that the worker runs on."""


def manifest() -> dict[str, Any]:
    """Name, version, description, default configuration and platforms."""
    return {
        "name": NAME,
        "version": version("iii-harness"),
        "description": DESCRIPTION,
        "default_config": defaults(),
        "supported_targets": list(TARGETS),
    }
