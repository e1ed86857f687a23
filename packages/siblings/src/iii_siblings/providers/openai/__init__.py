"""OpenAI and every server with a compatible API (siblings 8)."""
