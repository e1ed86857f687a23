"""The language of scripts (siblings 17.4): steps of actions, checked as a whole before anything is streamed."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from iii_contracts.messages import ErrorKind, StopReason
from iii_contracts.provider import INVALID
from iii_kit.errors import CodedError


class Wrapped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call in whatever way the request offers functions."""

    function: str
    payload: Any = {}
    id: str | None = None
    description: str | None = None


class Native(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call exactly as written."""

    function_id: str
    arguments: Any
    id: str | None = None


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An error frame."""

    kind: ErrorKind
    message: str = "scripted failure"
    retry_after_ms: int | None = None


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One action: exactly one of its fields is set."""

    text: str | None = None
    thinking: str | None = None
    call: Wrapped | None = None
    native_call: Native | None = None
    usage: dict[str, Any] | None = None
    delay_ms: float | None = None
    ping: bool = False
    error: Failure | None = None
    cut: bool = False
    hang: bool = False
    stop_reason: StopReason | None = None


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one generation does."""

    emit: list[Action]


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The steps of a conversation."""

    steps: list[Step]


def read_script(value: Any, where: str) -> Script:
    """The script that `value` holds. Raises `provider/invalid_request` naming the place."""
    try:
        script = msgspec.convert(value, Script)
    except msgspec.ValidationError as error:
        raise CodedError(INVALID, f"script of {where}: {error}") from None
    if not script.steps:
        raise CodedError(INVALID, f"script of {where}: `steps` is empty")
    for index, step in enumerate(cast("list[dict[str, Any]]", value["steps"])):
        for at, action in enumerate(step["emit"]):
            if len(action) != 1:
                names = ", ".join(Action.__struct_fields__)
                raise CodedError(INVALID, f"script of {where}: `steps.{index}.emit.{at}` needs exactly one of {names}")
    return script


def step_of(script: Script, messages: list[dict[str, Any]]) -> tuple[int, Step]:
    """The step of a transcript, by the number of its assistant messages; past the end the last one."""
    index = sum(message.get("role") == "assistant" for message in messages)
    return index, script.steps[min(index, len(script.steps) - 1)]
