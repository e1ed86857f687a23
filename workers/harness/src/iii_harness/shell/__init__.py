"""The durable shell of the loop: performs what the core decided, and tells it what happened (harness-loop 6, 7)."""
