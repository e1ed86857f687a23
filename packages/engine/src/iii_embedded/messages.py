"""Protocol messages as they go out (engine spec 3): the engine's half of the wire, as JSON bytes."""

from __future__ import annotations

from typing import Any

import msgspec

from iii_contracts.spec import CALLER
from iii_embedded.calls import NULL, Failure, Fresh, Outcome, Request
from iii_embedded.frames import InvokeFunction
from iii_embedded.registry import DEFAULT, elsewhere
from iii_embedded.triggers import BoundTrigger
from iii_kit.encoding import decode

PONG = b'{"type":"pong"}'

_encode = msgspec.json.Encoder().encode
_CALLER_KEY = f'"{CALLER}"'.encode()
_UNSET = msgspec.UNSET


class _Invoke(msgspec.Struct, tag_field="type", tag="invokefunction", omit_defaults=True):
    invocation_id: str
    function_id: str
    data: msgspec.Raw
    traceparent: str | None = None
    baggage: str | None = None
    metadata: msgspec.Raw | msgspec.UnsetType = _UNSET


class _Error(msgspec.Struct, omit_defaults=True):
    code: str
    message: str
    stacktrace: str | None = None


class _Result(msgspec.Struct, tag_field="type", tag="invocationresult", omit_defaults=True):
    invocation_id: str
    function_id: str
    result: msgspec.Raw | msgspec.UnsetType = _UNSET
    error: _Error | None = None
    traceparent: str | None = None
    baggage: str | None = None


class _RegisterTrigger(msgspec.Struct, tag_field="type", tag="registertrigger", omit_defaults=True):
    id: str
    trigger_type: str
    function_id: str
    config: msgspec.Raw
    metadata: msgspec.Raw | msgspec.UnsetType = _UNSET
    namespace: str | None = None
    trigger_namespace: str | None = None


def invoke(request: Request, invocation_id: str) -> bytes:
    """A call, as its executing worker gets it."""
    metadata = _UNSET if request.metadata is None else msgspec.Raw(request.metadata)
    data = msgspec.Raw(stamped(request.data, request.caller_id))
    return _encode(_Invoke(invocation_id, request.function_id, data, request.traceparent, request.baggage, metadata))


def result(call: InvokeFunction, invocation_id: str, outcome: Outcome) -> bytes:
    """The outcome of a call, as its caller gets it: with its own trace, and without a null result."""
    frame = _Result(invocation_id, call.function_id, traceparent=call.traceparent, baggage=call.baggage)
    if isinstance(outcome, Failure):
        frame.error = _Error(outcome.code, outcome.message, outcome.stacktrace)
    elif outcome != NULL:
        assert not isinstance(outcome, Fresh), "a value of this process stays in it"
        frame.result = msgspec.Raw(outcome)
    return _encode(frame)


def register_trigger(binding: BoundTrigger) -> bytes:
    """A binding, as the provider of its type gets it."""
    metadata = _UNSET if binding.metadata is None else msgspec.Raw(binding.metadata)
    provided_in = DEFAULT if binding.served_by is None else binding.served_by[0]
    return _encode(
        _RegisterTrigger(
            binding.id,
            binding.trigger_type,
            binding.function_id,
            msgspec.Raw(binding.config),
            metadata,
            elsewhere(binding.namespace),
            elsewhere(provided_in),
        )
    )


def unregister_trigger(binding: BoundTrigger) -> bytes:
    """A withdrawn binding, as the provider of its type gets it."""
    return _encode({"type": "unregistertrigger", "id": binding.id, "trigger_type": binding.trigger_type})


def binding_refused(id_: str, trigger_type: str, function_id: str, failure: Failure) -> bytes:
    """A refused binding, as the worker that made it gets it."""
    return _encode(
        {
            "type": "triggerregistrationresult",
            "id": id_,
            "trigger_type": trigger_type,
            "function_id": function_id,
            "error": {"code": failure.code, "message": failure.message},
        }
    )


def hello(worker_id: str, reattach_token: str) -> bytes:
    """The first frame of every connection."""
    return _encode({"type": "workerregistered", "worker_id": worker_id, "reattach_token": reattach_token})


def name_taken(namespace: str, name: str, owner_id: str) -> bytes:
    """The name that a worker wants belongs to another live one."""
    return _rejected("WORKER_NAMESPACE_CONFLICT", namespace, owner_id, worker_name=name)


def function_taken(namespace: str, function_id: str, owner_id: str) -> bytes:
    """The function id that a worker wants belongs to another live one, or to the engine."""
    return _rejected("FUNCTION_NAMESPACE_CONFLICT", namespace, owner_id, function_id=function_id)


def _rejected(code: str, namespace: str, owner_id: str, **subject: Any) -> bytes:
    frame = {"type": "registrationrejected", "code": code, "namespace": namespace, **subject}
    return _encode({**frame, "owner_worker_id": owner_id})


def stamped(data: bytes, caller_id: str | None) -> bytes:
    """An object payload with `_caller_worker_id`; every other one as it is (engine spec 5.2).

    The rest of the payload keeps its bytes; only one that already has the key is written anew.
    """
    if caller_id is None or data[:1] != b"{":
        return data
    if _CALLER_KEY in data:
        payload = decode(data)
        payload[CALLER] = caller_id
        return _encode(payload)
    body = data[:-1].rstrip()
    comma = b"" if body == b"{" else b","
    return b'%b%b%b:"%b"}' % (body, comma, _CALLER_KEY, caller_id.encode())
