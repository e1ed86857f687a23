"""The entry points of the harness: what callers ask of a session, outside a step (harness-loop 3)."""
