"""`harness::send`: start a turn or steer the one that runs (harness-loop 3.1, harness-agents 3.5).

Clients are shown a `message` that is plain text; a whole user or custom message is accepted as well.
"""

from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from iii_contracts.harness import codes
from iii_contracts.messages import ThinkingLevel
from iii_contracts.model import U32, U64, Json, Wire
from iii_contracts.policy import FunctionPolicy
from iii_contracts.spec import FunctionSpec

SystemPromptStrategy: TypeAlias = Literal["override", "enrich", "disabled"]
"""What `system_prompt` does to the identity prompt: stand in for it, follow it, or remove all of it."""


def _text_or_object(value: Any) -> Any:
    if isinstance(value, (str, dict)):
        return cast("str | dict[str, Any]", value)
    raise PydanticCustomError("string_type", "Input should be text or a message object")


MessageInput: TypeAlias = Annotated[
    str | dict[str, Any], PlainValidator(_text_or_object), WithJsonSchema({"type": "string"})
]
"""Text, advertised; or a message object of role `user` or `custom`, whose inside the receiver validates."""


class TextOutput(Wire):
    """The turn delivers text: the default."""

    type: Literal["text"]


class JsonOutput(Wire):
    """The turn delivers JSON, checked against `schema` when there is one."""

    type: Literal["json"]
    json_schema: Json = Field(default=None, alias="schema", description="JSON Schema of the result.")


OutputContract: TypeAlias = Annotated[TextOutput | JsonOutput, Field(discriminator="type")]
"""What a turn must deliver, told apart by `type`."""


class SendOptions(Wire):
    """How the turn runs. Frozen when a turn starts; a message that joins a running turn changes none of them."""

    agent: str | None = Field(default=None, description="Agent profile of a new session.")
    system_prompt: str | None = Field(default=None, description="Text of the caller's own system prompt.")
    system_prompt_strategy: SystemPromptStrategy | None = Field(
        default=None,
        description="`enrich` (default) puts the text behind the built-in prompt, `override` puts it in its place, "
        "`disabled` sends no prompt. Naming either prompt field resolves the prompt anew; else the session keeps its "
        "own.",
    )
    max_turns: U32 | None = Field(default=None, description="Generations the turn may use.")
    max_output_tokens: U64 | None = Field(default=None, description="Ceiling of each generation's output.")
    max_total_tokens: U64 | None = Field(default=None, description="Token budget of the session tree.")
    max_cost_usd: float | None = Field(default=None, description="Cost budget of the session tree.")
    thinking_level: ThinkingLevel | None = Field(default=None, description="How much the model reasons.")
    provider_options: dict[str, Json] | None = Field(
        default=None, description="Options by provider id; `{}` resets to the provider's defaults."
    )
    reasoning: Literal["lowest"] | None = Field(
        default=None, description="The least reasoning that the model offers; not together with the two fields above."
    )
    output: OutputContract | None = Field(default=None, description="What the turn delivers.")
    functions: FunctionPolicy | None = Field(
        default=None,
        description="Which functions the turn may call. Left out: the session's last policy, or none in a new session.",
    )
    skills: list[str] | None = Field(default=None, description="Skills the agent is told of.")
    metadata: Json = Field(default=None, description="Kept with the turn; never sent to the functions it calls.")
    max_validation_retries: U32 | None = Field(default=None, description="Retries of an invalid JSON result.")


class SessionInit(Wire):
    """What a send gives to the session that it creates."""

    title: str | None = Field(default=None, description="Title of the session.")
    metadata: Json = Field(default=None, description="Metadata of the session.")
    kind: str | None = Field(default=None, description="`user` (default), `automation` or `e2e`.")


class SendRequest(Wire):
    """A message for a session."""

    message: MessageInput = Field(description="What to say to the agent.")
    session_id: str | None = Field(default=None, description="Session to continue; left out, one is created.")
    model: str | None = Field(default=None, description="Model id; needed for a new session.")
    provider: str | None = Field(default=None, description="Provider that serves the model.")
    idempotency_key: str | None = Field(default=None, description="Sends with one key are one send.")
    session: SessionInit | None = Field(default=None, description="Used only when this send creates the session.")
    options: SendOptions | None = Field(default=None, description="How the turn runs.")


class ReasoningChoice(Wire):
    """The effort that `reasoning: "lowest"` came to."""

    thinking_level: ThinkingLevel | None = Field(default=None, description="Level that rules, if any.")
    reasoning_effort: str | None = Field(default=None, description="Effort of the provider that rules, if any.")


class SendResponse(Wire):
    """The message is durable; the turn runs on its own."""

    session_id: str = Field(description="Session that has the message.")
    turn_id: str = Field(description="Turn that answers it.")
    accepted: bool = Field(description="Always true.")
    merged: bool | None = Field(default=None, description="True when a turn was already running.")
    queued: bool | None = Field(default=None, description="True when the message waits for that turn's next step.")
    deduplicated: bool | None = Field(default=None, description="True when an earlier send had the same key.")
    reasoning: ReasoningChoice | None = Field(default=None, description='Answer to `reasoning: "lowest"`.')


SEND = FunctionSpec(
    "harness::send",
    "Send a message to a session and return at once. Starts a turn, or steers the running one: its next step reads the "
    "message. Follow the turn with harness::turn-completed or harness::status.",
    SendRequest,
    SendResponse,
    codes.INVALID_REQUEST,
    codes.INTERNAL_FUNCTION,
    (codes.INVALID_MESSAGE_ROLE, codes.STATE, codes.DEPENDENCY),
)

FUNCTIONS = (SEND,)
