"""Providers of models (siblings 6): what they share, `openai` and `scripted`."""
