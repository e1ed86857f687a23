"""Results that the harness gives itself (harness-loop 8.5). Previews are cut by characters, never bytes."""

from __future__ import annotations

from typing import Any, cast

from iii_harness.decide.canonical import compact
from iii_harness.decide.plan import MARKERS, SUBMIT, PlannedCall
from iii_harness.decide.results import Result, text_block
from iii_kit.bus import Json

PREVIEW = 200
"""Characters of the arguments that an error text shows."""


def _result(text: str, details: dict[str, Any]) -> Result:
    return Result([text_block(text)], details, is_error=True)


def interrupted(*, stopped: bool) -> Result:
    """A call that was started and whose end nobody saw."""
    text = (
        "interrupted: started, outcome unknown (stopped during execution)"
        if stopped
        else "interrupted: executed at most once, result unknown (restart during execution)"
    )
    return _result(text, {"error": "interrupted"})


def denied(call: PlannedCall, message: str) -> Result:
    """A call that the policy or a wall refuses."""
    return _result(message, {"error": "policy_denied", "function_id": call.target, "message": message})


def no_target(call: PlannedCall) -> Result:
    """A wrapper call that names no function."""
    message = (
        f"agent_trigger needs the id of the function to call. Got: {_preview(call.arguments)}. Expected shape: "
        '{"function": "<function id>", "description": "<short purpose>", "payload": {...}}'
    )
    return _result(message, {"error": "agent_trigger_no_target", "message": message})


def no_submit(call: PlannedCall) -> Result:
    """A structured result in a turn that asks for text."""
    message = f"{SUBMIT} is not offered in this turn: its result is the text of your last message. Answer in text."
    return _result(message, {"error": "policy_denied", "function_id": call.target, "message": message})


def truncated(call: PlannedCall, *, at_length: bool) -> Result:
    """Arguments that are not a whole object."""
    if at_length:
        cause = "max_output_tokens"
        why = "the message reached its output limit before the arguments were complete; send a shorter call"
    else:
        cause = "incomplete_json"
        why = "they are not one complete JSON object; send the whole object again"
    message = f"{call.target} was not called: {why}. Got: {_preview(_unmarked(call.arguments))}"
    return _result(message, {"error": "arguments_truncated", "cause": cause, "message": message})


def repeated(call: PlannedCall, count: int) -> Result:
    """A call that failed in the same way too often."""
    message = (
        f"{call.target} was not run again: these exact arguments failed {count} times with the same error. "
        "Change the arguments or the approach."
    )
    details = {"error": "repeated_failure", "function_id": call.target, "count": count, "message": message}
    return _result(message, details)


def orphan(*, last: bool) -> Result:
    """A call without any result in what the model is sent (12.8)."""
    if last:
        return interrupted(stopped=False)
    return Result([text_block("elided: the result was removed by compaction")], {"error": "elided"})


def is_truncated(arguments: Json) -> bool:
    """True for arguments that must not be executed: no object, or marked as incomplete by the provider."""
    return not isinstance(arguments, dict) or any(key in arguments for key in MARKERS)


def _unmarked(arguments: Json) -> Json:
    if not isinstance(arguments, dict):
        return arguments
    fields = cast("dict[str, Any]", arguments)
    raw = fields.get("_raw")
    shown = {key: value for key, value in fields.items() if key not in MARKERS}
    return raw if not shown and isinstance(raw, str) else shown


def _preview(value: Json) -> str:
    text = value if isinstance(value, str) else compact(value)
    return text if len(text) <= PREVIEW else text[:PREVIEW] + "…"
