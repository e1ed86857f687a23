"""OpenAI and every server with a compatible API (siblings 8)."""

from iii_siblings.providers.openai.worker import install

__all__ = ["install"]
