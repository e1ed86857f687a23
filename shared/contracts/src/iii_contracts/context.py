"""The context manager as its callers see it: `context::assemble` and `context::count-tokens` (siblings 4)."""

from typing import Literal

from pydantic import Field

from iii_contracts.generation import Messages, Tool
from iii_contracts.messages import ThinkingLevel
from iii_contracts.model import U64, Wire
from iii_contracts.spec import FunctionSpec

INVALID = "context/invalid_request"
UNRESOLVED = "context/model_unresolved"
STATE = "context/state"
OVERFLOW = "context/overflow"


class ModelLimits(Wire):
    """The window of a model, for callers that know it."""

    context_window: U64 = Field(description="Tokens of input and output together.")
    max_output_tokens: U64 = Field(description="Ceiling of the output.")
    input_limit: U64 | None = Field(default=None, description="Input budget when it is not window minus output.")


class ModelRef(Wire):
    """The model that a context is for."""

    id: str = Field(description="Model id.")
    provider: str | None = Field(default=None, description="Provider id.")
    limits: ModelLimits | None = Field(default=None, description="Its limits; absent asks the router.")


class AssembleOptions(Wire):
    """How a context is fitted."""

    reserved_tokens: U64 | None = Field(default=None, description="Head-room; absent takes a share of the window.")
    tail_turns: int = Field(default=2, description="Newest turns that compaction keeps verbatim.")
    allow_compaction: bool = Field(default=True, description="Earlier messages may be replaced by a summary.")
    allow_prune: bool = Field(default=True, description="Aged function results may be replaced by placeholders.")
    protected_functions: list[str] = Field(
        default_factory=list[str], description="Functions whose results are never pruned."
    )
    max_result_tokens: U64 | None = Field(
        default=None, description="Size over which one result is cut; 0 never cuts, absent takes the configured size."
    )
    request_overhead_tokens: U64 | None = Field(
        default=None, description="Tokens of the request around messages, prompt and tools; added to the count."
    )
    thinking_level: ThinkingLevel | None = Field(default=None, description="Level whose budget is kept free.")
    lease_key: str | None = Field(default=None, description="Only one compaction runs under a key at a time.")
    previous_summary: str | None = Field(default=None, description="Summary of what lies before the messages.")


class AssembleRequest(Wire):
    """A transcript to fit into a model's window."""

    messages: Messages = Field(description="The transcript, oldest first.")
    model: ModelRef = Field(description="The model it is for.")
    system_prompt: str | None = Field(default=None, description="The prompt that goes out with it.")
    tools: list[Tool] | None = Field(default=None, description="The functions that are offered with it.")
    parts: dict[str, str] | None = Field(
        default=None, description="Named parts of the prompt, to be counted apart as well."
    )
    options: AssembleOptions | None = Field(default=None, description="How it is fitted.")


class Applied(Wire):
    """What was done to make it fit."""

    initial_token_count: U64 | None = Field(default=None, description="Size before anything was done.")
    pruned: bool = Field(default=False, description="Aged results were replaced.")
    pruned_tokens: U64 = Field(default=0, description="Tokens that pruning freed.")
    capped_parts: U64 = Field(default=0, description="Results that were cut.")
    capped_tokens: U64 = Field(default=0, description="Tokens that cutting freed.")
    compacted: bool = Field(default=False, description="Earlier messages were replaced by a summary.")
    summary: str | None = Field(default=None, description="That summary.")
    tail_start_index: U64 | None = Field(
        default=None, description="First message of the request that was kept; null when all were summarised."
    )
    tokens_before: U64 | None = Field(default=None, description="Size before the summary.")
    summarized_head_tokens: U64 | None = Field(default=None, description="Tokens that the summary stands for.")


class ByRole(Wire):
    """Tokens of messages by role."""

    user: U64 = Field(default=0, description="Tokens of user messages.")
    assistant: U64 = Field(default=0, description="Tokens of the model's own messages.")
    function_result: U64 = Field(default=0, description="Tokens of results.")
    custom: U64 = Field(default=0, description="Tokens of custom messages.")


class Breakdown(Wire):
    """Tokens by what they are spent on."""

    system_prompt_tokens: U64 = Field(description="Tokens of the prompt.")
    tools_tokens: U64 = Field(description="Tokens of the tools.")
    by_role: ByRole = Field(description="Tokens of the messages.")
    by_part: dict[str, U64] | None = Field(
        default=None, description="Tokens of the named parts, which the prompt's include."
    )
    estimator: Literal["heuristic", "tokenizer"] = Field(description="How tokens were counted.")


class AssembleAnswer(Wire):
    """The fitted transcript, and how large it is."""

    system_prompt: str = Field(description="The prompt to send, with the summary when there is one.")
    messages: Messages = Field(description="The messages to send; never a custom one.")
    token_count: U64 = Field(description="Size of the whole request.")
    usable: U64 = Field(description="Input tokens that the model's window leaves.")
    effective_max_output_tokens: U64 = Field(description="Output ceiling of the model.")
    model_resolved: Literal["inline", "router", "fallback"] = Field(description="Where its limits came from.")
    applied: Applied = Field(description="What was done to make it fit.")
    breakdown: Breakdown | None = Field(default=None, description="What the tokens are spent on.")


class CountRequest(Wire):
    """A request to measure."""

    messages: Messages = Field(description="The messages.")
    model: ModelRef = Field(description="The model they are for.")
    system_prompt: str | None = Field(default=None, description="The prompt that goes out with them.")
    tools: list[Tool] | None = Field(default=None, description="The functions that are offered with them.")


class CountAnswer(Wire):
    """Its size."""

    tokens: U64 = Field(description="Tokens of messages, prompt and tools together.")
    by_role: ByRole | None = Field(default=None, description="Tokens of the messages.")
    estimator: str = Field(description="How tokens were counted.")


ASSEMBLE = FunctionSpec(
    "context::assemble",
    "Fit a transcript into the window of a model: results are cut and pruned, earlier messages summarised.",
    AssembleRequest,
    AssembleAnswer,
    INVALID,
    {"internal": True, "trace_hidden": True},
    (UNRESOLVED, STATE, OVERFLOW),
)

COUNT_TOKENS = FunctionSpec(
    "context::count-tokens",
    "Estimate the size of messages, prompt and tools for a model.",
    CountRequest,
    CountAnswer,
    INVALID,
    {"trace_hidden": True},
    (UNRESOLVED,),
)

FUNCTIONS = (ASSEMBLE, COUNT_TOKENS)
