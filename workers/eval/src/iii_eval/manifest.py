"""What `iii-eval --manifest` prints (eval 1.1)."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final

NAME: Final = "eval"

DESCRIPTION: Final = (
    "Compares live objective metrics of 2-5 root sessions; durable prompt experiments are its advanced surface"
)

REGISTRY_VERSION: Final = "0.2.2-experimental"
"""The version under which the worker is published; its package carries the form that PEP 440 allows."""

TARGETS: Final = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
)
"""Platforms that the worker runs on."""


def manifest() -> dict[str, Any]:
    """Name, versions, description, default configuration (there is none) and platforms."""
    return {
        "name": NAME,
        "version": version("iii-eval"),
        "registry_version": REGISTRY_VERSION,
        "description": DESCRIPTION,
        "default_config": {},
        "supported_targets": list(TARGETS),
    }
