"""The errors a caller of the harness gets (harness-loop 18)."""

from __future__ import annotations

from iii_contracts.harness import codes
from iii_kit.errors import BusError, CodedError


def invalid_request(text: str) -> CodedError:
    """The request cannot be accepted; the text says what to change."""
    return CodedError(codes.INVALID_REQUEST, text)


def invalid_role(role: object) -> CodedError:
    """A message that is neither a person's nor a custom entry."""
    return CodedError(codes.INVALID_MESSAGE_ROLE, f"`message.role`: expected `user` or `custom`, got {role!r}")


def dependency(function_id: str, cause: BusError) -> CodedError:
    """A call that the harness needs has failed."""
    return CodedError(codes.DEPENDENCY, f"{function_id}: {cause}")


def state_failed(doing: str, cause: BusError) -> CodedError:
    """The harness's own bookkeeping could not be read or written."""
    return CodedError(codes.STATE, f"{doing}: {cause}")
