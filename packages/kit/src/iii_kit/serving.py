"""What serving a declared function means, the same on every bus (design: "Contracts first").

The request of a call is parsed by the function's contract, the answer of a handler becomes plain JSON. How errors
travel is the business of each bus.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from iii_contracts.spec import FunctionSpec
from iii_kit.bus import Json
from iii_kit.errors import BusError, CategoryError, CodedError


def request_of(spec: FunctionSpec, data: Json) -> Any:
    """The validated request in `data`. Raises the error that `spec` names for a request that does not fit."""
    request, problem = spec.parse(data)
    if problem is not None:
        raise refusal(spec, problem)
    return request


def refusal(spec: FunctionSpec, problem: str) -> BusError:
    """The error of a request that does not fit."""
    if "/" in spec.invalid:
        return CodedError(spec.invalid, problem)
    if " " in spec.invalid:
        return CategoryError(spec.invalid, problem)
    return BusError(spec.invalid, f"Failed to deserialize input for {spec.id}: {problem}", spec.id)


def answer_of(result: Any) -> Json:
    """The JSON of what a handler returned: a model without the fields that nobody set, anything else as it is."""
    return result.model_dump(mode="json", exclude_unset=True) if isinstance(result, BaseModel) else result
