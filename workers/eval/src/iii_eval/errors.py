"""The errors a caller of eval gets: the category first, then what happened (eval 2.3)."""

from __future__ import annotations

from iii_contracts.eval import categories
from iii_kit.clients.failures import Failure, classify
from iii_kit.errors import BusError, CategoryError


def invalid_request(text: str) -> CategoryError:
    """The request cannot be accepted; the text names the field and what it must be."""
    return CategoryError(categories.INVALID_REQUEST, text)


def session_not_found(session_id: str) -> CategoryError:
    """A session that the store does not know."""
    return CategoryError(categories.SESSION_NOT_FOUND, session_id)


def dependency(function_id: str, cause: BusError, timeout_ms: int) -> CategoryError:
    """A function of another worker failed, refused or gave no answer."""
    return CategoryError(categories.DEPENDENCY, f"{function_id}: {failure_text(cause, timeout_ms)}")


def serialization(function_id: str, problem: str) -> CategoryError:
    """A function of another worker answered in a shape that cannot be read."""
    return CategoryError(categories.SERIALIZATION, f"{function_id}: {problem}")


def failure_text(cause: BusError, timeout_ms: int) -> str:
    """What a failed call said, its code first; of one that was not answered also how long it was waited for."""
    told = cause.message if cause.message.startswith(f"{cause.code}: ") else f"{cause.code}: {cause.message}"
    if classify(cause) is Failure.TIMED_OUT:
        return f"no answer within {timeout_ms / 1000:g} seconds ({told})"
    return told
