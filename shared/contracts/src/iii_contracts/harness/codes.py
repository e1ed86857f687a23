"""Error codes of the harness on the bus (harness-loop 18)."""

from typing import Final

INVALID_REQUEST: Final = "harness/invalid_request"
"""A bad request: wrong shape, unknown or read-only session, an option that is not served."""

INVALID_MESSAGE_ROLE: Final = "harness/invalid_message_role"
"""The message of a send has a role other than `user` or `custom`."""

DEPENDENCY: Final = "harness/dependency"
"""A call that the harness needs failed; the text is `<function id>: <cause>`."""

CONTEXT_OVERFLOW: Final = "harness/context_overflow"
"""The conversation does not fit the model's window."""

STATE: Final = "harness/state"
"""The harness could not read or write its own durable rows."""

INTERNAL: Final = "harness/internal"
"""Something unexpected; the log has the details."""

CODES: Final = (INVALID_REQUEST, INVALID_MESSAGE_ROLE, DEPENDENCY, CONTEXT_OVERFLOW, STATE, INTERNAL)

INTERNAL_FUNCTION: Final = {"internal": True}
"""Metadata of a function that default discovery hides."""

HIDDEN_FUNCTION: Final = {"internal": True, "trace_hidden": True}
"""Metadata of a function that discovery hides, with its spans."""
