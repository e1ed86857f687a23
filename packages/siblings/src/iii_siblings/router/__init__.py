"""The model router: catalogue, providers, routing, retries and the relay of streams (siblings 5, 6)."""

from iii_siblings.router.registry import FAMILY
from iii_siblings.router.worker import Router, install

__all__ = ["FAMILY", "Router", "install"]
