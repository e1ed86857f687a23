"""OpenAI and every server with a compatible API (siblings 8)."""

from iii_siblings.providers.openai.worker import OpenAiProvider, install

__all__ = ["OpenAiProvider", "install"]
