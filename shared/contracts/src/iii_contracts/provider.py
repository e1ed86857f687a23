"""What a provider of models serves (siblings 6): the same functions for every provider id."""

from dataclasses import dataclass

from pydantic import Field

from iii_contracts.generation import Generation, HandCheckedSpec, Messages, Model, Nothing, Tool
from iii_contracts.model import U64, Json, Wire
from iii_contracts.spec import FunctionSpec

UNAVAILABLE = "provider/upstream_unavailable"
INVALID = "provider/invalid_request"


class StreamRequest(Generation):
    """One generation to stream."""

    writer_ref: Json = Field(description="Write end of the channel that gets the frames.")
    provider_options: dict[str, Json] | None = Field(default=None, description="Options of this provider.")
    model_meta: Model | None = Field(default=None, description="The router's catalogue entry of the model.")
    resolution_key: str | None = Field(default=None, description="Key of an abort; the same over retries.")


class StreamAnswer(Wire):
    """The stream has ended."""

    ok: bool = Field(description="True when the terminal frame was sent.")


class AbortRequest(Wire):
    """Which stream to stop."""

    request_id: str = Field(description="Its request id or resolution key.")


class AbortAnswer(Wire):
    """Whether something was stopped."""

    aborted: bool = Field(description="False when no such stream runs.")


class RefreshAnswer(Wire):
    """A finished discovery."""

    ok: bool = Field(description="True when the catalogue was told.")
    count: U64 = Field(description="Models told.")


class ReadyNote(Wire):
    """The payload of the router's ready event."""


class CountRequest(Wire):
    """A request whose tokens are counted."""

    messages: Messages = Field(description="The transcript.")
    model: str = Field(description="Model id.")
    system_prompt: str | None = Field(default=None, description="System prompt.")
    tools: list[Tool] | None = Field(default=None, description="Functions offered.")


class CountAnswer(Wire):
    """A count."""

    tokens: U64 = Field(description="Input tokens.")


@dataclass(frozen=True)
class ProviderFunctions:
    """The functions of one provider."""

    stream: FunctionSpec
    abort: FunctionSpec
    refresh_models: FunctionSpec
    on_router_ready: FunctionSpec

    @property
    def all(self) -> tuple[FunctionSpec, ...]:
        """Every function, in the order of registration."""
        return (self.stream, self.abort, self.refresh_models, self.on_router_ready)


def functions_of(provider: str) -> ProviderFunctions:
    """The functions that the provider `provider` serves."""
    at = f"provider::{provider}"
    return ProviderFunctions(
        stream=HandCheckedSpec(
            f"{at}::stream",
            "Streams one generation into a channel: `start` first, one terminal frame last.",
            StreamRequest,
            StreamAnswer,
            INVALID,
            metadata={"embedded": True, "internal": True},
            errors=(INVALID,),
        ),
        abort=FunctionSpec(
            f"{at}::abort",
            "Stops a running generation.",
            AbortRequest,
            AbortAnswer,
            INVALID,
            metadata={"embedded": True},
            errors=(INVALID,),
        ),
        refresh_models=FunctionSpec(
            f"{at}::refresh_models",
            "Asks the provider for its models and tells the router's catalogue.",
            Nothing,
            RefreshAnswer,
            INVALID,
            metadata={"embedded": True},
            errors=(INVALID, UNAVAILABLE),
        ),
        on_router_ready=FunctionSpec(
            f"{at}::on_router_ready",
            "Registers with the router again, which has just started or was configured anew.",
            ReadyNote,
            None,
            INVALID,
            metadata={"embedded": True, "internal": True},
            errors=(INVALID,),
        ),
    )


ANTHROPIC = functions_of("anthropic")
OPENAI = functions_of("openai")
SCRIPTED = functions_of("scripted")
FUNCTIONS: tuple[FunctionSpec, ...] = ANTHROPIC.all + OPENAI.all + SCRIPTED.all
TRIGGERS = ()
