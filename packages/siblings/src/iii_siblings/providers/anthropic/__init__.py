"""Anthropic and every server that speaks its Messages API (siblings 7)."""

from iii_siblings.providers.anthropic.worker import install

__all__ = ["install"]
