"""Base classes and field types of wire models (harness-loop 2, siblings 1.1).

Validation is strict: no text is taken for a number, no number for a text. Requests ignore unknown fields; `Closed`
shapes refuse them. Optional fields without a value are left out on the wire: models are dumped without unset fields.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema


class Wire(BaseModel):
    """A shape on the wire that ignores unknown fields."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, defer_build=True)


class Closed(BaseModel):
    """A shape on the wire that refuses unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


Json: TypeAlias = Any
"""Any JSON value."""


def _unsigned(bits: int) -> Any:
    return WithJsonSchema({"type": "integer", "format": f"uint{bits}", "minimum": 0})


U8 = Annotated[int, Field(ge=0, le=2**8 - 1), _unsigned(8)]
"""Unsigned 8-bit integer."""

U32 = Annotated[int, Field(ge=0, le=2**32 - 1), _unsigned(32)]
"""Unsigned 32-bit integer."""

U64 = Annotated[int, Field(ge=0, le=2**64 - 1), _unsigned(64)]
"""Unsigned 64-bit integer."""

I64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1), WithJsonSchema({"type": "integer", "format": "int64"})]
"""Signed 64-bit integer; times are milliseconds since the epoch."""

F64 = Annotated[float, WithJsonSchema({"type": "number", "format": "double"})]
"""Double-precision number."""
