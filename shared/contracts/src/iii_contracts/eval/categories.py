"""Categories of eval's errors: the first words of their texts (eval 2.3)."""

INVALID_REQUEST = "invalid request"
NOT_FOUND = "evaluation not found"
SESSION_NOT_FOUND = "session not found"
CONFLICT = "evaluation conflict"
DEPENDENCY = "dependency error"
STATE = "state error"
SERIALIZATION = "serialization error"

CATEGORIES = (INVALID_REQUEST, NOT_FOUND, SESSION_NOT_FOUND, CONFLICT, DEPENDENCY, STATE, SERIALIZATION)
"""All of them."""
