"""Protocol messages as they come in, and strict JSON (engine spec 2.3, 3).

A frame is read once: its own fields are checked, payloads stay the bytes that arrived. What is not exactly one JSON
message of a known type with the required fields of the right types is `Unreadable`, and is never answered. Only of a
result that is unreadable is the call found that it answers: whoever waits for it is told at once.
"""

from __future__ import annotations

import json
import math
import re
import uuid
from typing import Any, TypeAlias, cast

import msgspec

from iii_kit.encoding import nested_deeper_than

TELEMETRY = (b"OTLP", b"MTRC", b"LOGS")
"""First bytes of a binary frame of telemetry (engine spec 19.3)."""

ABSENT = msgspec.Raw(b"")
"""A payload field that was left out."""

MAX_KEPT_DEPTH = 100
"""Levels of what the engine keeps and shows again inside its listings: schemas, metadata, configs."""

_CANONICAL_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SHAPE = bytes.maketrans(b"123456789E", b"000000000e")
_LARGE_NUMBERS = (b"0e000", b"0e+000", b"0" * 309)
"""What a number beyond the range of a double contains, once every digit is `0` and every `E` is `e`."""
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]*')


class Unreadable(Exception):
    """A frame that is no message."""


class WireError(msgspec.Struct):
    """The error of a result, as a worker wrote it."""

    code: str
    message: str
    stacktrace: str | None = None


class Void(msgspec.Struct, tag_field="type", tag="void"):
    """The action of a call that nobody waits for."""


class Enqueue(msgspec.Struct, tag_field="type", tag="enqueue"):
    """The action of a call that a queue shall make."""

    queue: str


class RegisterFunction(msgspec.Struct, tag_field="type", tag="registerfunction"):
    """A function is served from now on."""

    id: str
    description: str | None = None
    request_format: msgspec.Raw = ABSENT
    response_format: msgspec.Raw = ABSENT
    metadata: msgspec.Raw = ABSENT
    invocation: msgspec.Raw = ABSENT


class UnregisterFunction(msgspec.Struct, tag_field="type", tag="unregisterfunction"):
    """A function is not served any more."""

    id: str


class RegisterService(msgspec.Struct, tag_field="type", tag="registerservice"):
    """A group of functions; not kept."""

    id: str
    name: str | None = None
    description: str | None = None
    parent_service_id: str | None = None


class InvokeFunction(msgspec.Struct, tag_field="type", tag="invokefunction"):
    """A call."""

    function_id: str
    data: msgspec.Raw
    invocation_id: str | None = None
    traceparent: str | None = None
    baggage: str | None = None
    action: Void | Enqueue | None = None
    metadata: msgspec.Raw = ABSENT
    namespace: str | None = None


class InvocationResult(msgspec.Struct, tag_field="type", tag="invocationresult"):
    """How a call ended."""

    invocation_id: str
    function_id: str
    result: msgspec.Raw = ABSENT
    error: WireError | None = None
    traceparent: str | None = None
    baggage: str | None = None


class RegisterTriggerType(msgspec.Struct, tag_field="type", tag="registertriggertype"):
    """A trigger type is provided from now on."""

    id: str
    description: str
    trigger_request_format: msgspec.Raw = ABSENT
    call_request_format: msgspec.Raw = ABSENT
    namespace: str | None = None


class UnregisterTriggerType(msgspec.Struct, tag_field="type", tag="unregistertriggertype"):
    """A trigger type is not provided any more."""

    id: str
    namespace: str | None = None


class RegisterTrigger(msgspec.Struct, tag_field="type", tag="registertrigger"):
    """A binding."""

    id: str
    trigger_type: str
    function_id: str
    config: msgspec.Raw
    metadata: msgspec.Raw = ABSENT
    namespace: str | None = None
    trigger_namespace: str | None = None


class TriggerRegistrationResult(msgspec.Struct, tag_field="type", tag="triggerregistrationresult"):
    """What a provider says to a binding."""

    id: str
    trigger_type: str
    function_id: str
    error: WireError | None = None


class UnregisterTrigger(msgspec.Struct, tag_field="type", tag="unregistertrigger"):
    """A binding is withdrawn."""

    id: str
    trigger_type: str | None = None


class Reattach(msgspec.Struct, tag_field="type", tag="reattach"):
    """A worker came back and ends its former connection."""

    previous_worker_id: str
    reattach_token: str | None = None


class Ping(msgspec.Struct, tag_field="type", tag="ping"):
    """Are you there."""


class Pong(msgspec.Struct, tag_field="type", tag="pong"):
    """I am."""


Registration: TypeAlias = (
    RegisterFunction
    | UnregisterFunction
    | RegisterService
    | RegisterTriggerType
    | UnregisterTriggerType
    | RegisterTrigger
    | UnregisterTrigger
)
"""What waits for the announcement of its worker (engine spec 4.2)."""

Frame: TypeAlias = Registration | InvokeFunction | InvocationResult | TriggerRegistrationResult | Reattach | Ping | Pong

_decoder = msgspec.json.Decoder(Frame)


def read(data: bytes) -> Frame | None:
    """The message of a frame; None for what is silently ignored (blank, telemetry). Raises `Unreadable`."""
    if data.startswith(TELEMETRY) or not data.strip():
        return None
    try:
        if not data.isascii():
            data.decode()
        frame = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(str(error)) from None
    shape = data.translate(_SHAPE)
    if any(number in shape for number in _LARGE_NUMBERS):
        _refuse_large_numbers(data)
    return frame


def call_of_broken_result(data: bytes) -> str | None:
    """The id of the call that an unreadable result answers (with NaN, say); None when that cannot be told."""
    try:
        read: Any = json.loads(data.decode(errors="replace"))
        frame = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
        return canonical(str(frame.get("invocation_id"))) if frame.get("type") == "invocationresult" else None
    except (ValueError, RecursionError, Unreadable):
        return None


def canonical(invocation_id: str) -> str:
    """The canonical spelling of an invocation id. Raises `Unreadable` for what is no UUID."""
    if _CANONICAL_ID.fullmatch(invocation_id):
        return invocation_id
    try:
        return str(uuid.UUID(invocation_id))
    except ValueError:
        raise Unreadable(f"invocation_id {invocation_id[:80]!r} is no UUID") from None


def given(raw: msgspec.Raw) -> bytes | None:
    """The bytes of an optional payload field; None when it is absent or null."""
    data = bytes(raw)
    return None if data in (b"", b"null") else data


def kept(raw: msgspec.Raw) -> Any:
    """The value of a field that the engine keeps and shows. Raises `Unreadable` when it is too deep for that."""
    data = given(raw)
    if data is None:
        return None
    value = msgspec.json.decode(data)
    if nested_deeper_than(value, MAX_KEPT_DEPTH):
        raise Unreadable(f"a value nested deeper than {MAX_KEPT_DEPTH} levels cannot be registered")
    return value


def _refuse_large_numbers(data: bytes) -> None:
    for token in _TOKEN.finditer(data):
        text = token.group()
        if text[:1] != b'"' and math.isinf(float(text)):
            raise Unreadable("a number is outside the range of a double")
