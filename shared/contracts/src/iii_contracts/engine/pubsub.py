"""Publish and subscribe (engine spec 15.1)."""

from typing import Any, cast

from pydantic import Field, field_validator, model_validator

from iii_contracts.model import Json, Wire
from iii_contracts.spec import FunctionSpec, TriggerSpec


class PublishRequest(Wire):
    """Data for the subscribers of a topic."""

    topic: str = Field(description="Name of the topic; it matches to the letter.")
    data: Json = Field(description="What the subscribers get: any JSON.")


class SubscribeConfig(Wire):
    """Which topic a binding hears of. Without a topic it never fires."""

    topic: str = Field(default="", description="Name of the topic.")
    condition_function_id: str | None = Field(
        default=None, description="Called first with the data; answers false to skip the function."
    )

    @model_validator(mode="before")
    @classmethod
    def _anything_silent(cls, data: Any) -> Any:
        return cast("Any", data) if isinstance(data, dict) else {}

    @field_validator("topic", mode="before")
    @classmethod
    def _no_topic(cls, topic: Any) -> str:
        return topic if isinstance(topic, str) else ""


PUBLISH = FunctionSpec(
    "publish",
    "Hand data to all subscribers of a topic, without waiting for them. Nothing is stored.",
    PublishRequest,
    None,
    "deserialization_error",
    errors=("topic_not_set",),
)
SUBSCRIBE = TriggerSpec("subscribe", "Fires with whatever is published to a topic.", SubscribeConfig, None)

FUNCTIONS = (PUBLISH,)
TRIGGERS = (SUBSCRIBE,)
