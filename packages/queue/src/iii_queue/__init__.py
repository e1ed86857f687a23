"""The queue provider of the embedded engine, and a queue worker of its own."""
