"""Channels (engine spec 8.1, siblings 1.3): `engine::channels::create`."""

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from iii_contracts.model import Wire
from iii_contracts.spec import FunctionSpec, TriggerSpec

DEFAULT_BUFFER = 64
"""Items that wait in a channel when its maker names no number."""

MAX_BUFFER = 1024
"""Upper end of the range that a buffer size is clamped to; the lower end is 1."""


class CreateRequest(Wire):
    """How large a channel is."""

    buffer_size: (
        Annotated[int, Field(ge=0), WithJsonSchema({"type": "integer", "format": "uint", "minimum": 0})] | None
    ) = Field(
        default=None,
        description=f"Items that may wait before the writer is held back: 64 by default, clamped to 1..{MAX_BUFFER}.",
    )


class ChannelEnd(Wire):
    """One end of a channel: what a payload carries to whoever shall read or write."""

    channel_id: str = Field(description="Id of the channel.")
    access_key: str = Field(description="Secret that opens either end.")
    direction: Literal["read", "write"] = Field(description="Which end this is.")


class CreateResponse(Wire):
    """Both ends of a new channel."""

    writer: ChannelEnd = Field(description="The end that items go into.")
    reader: ChannelEnd = Field(description="The end that items come out of.")


CREATE = FunctionSpec(
    "engine::channels::create",
    "Make a channel, a one-way pipe of text and binary items, and answer its two ends. Each end can be taken once.",
    CreateRequest,
    CreateResponse,
    "deserialization_error",
)

FUNCTIONS = (CREATE,)
TRIGGERS: tuple[TriggerSpec, ...] = ()
