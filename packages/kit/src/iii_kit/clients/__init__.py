"""Typed thin wrappers over a `Caller` for the siblings and built-ins that workers use (harness-loop 1, siblings 3-10).

Plain JSON in and out. Every write is offered twice: as an awaited method and as a `Call` for `Caller.sequence`.
"""
