"""The way of a call to its function (engine spec 5, 6, 7): resolution, enqueue, what travels beside the payload."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import msgspec

from iii_embedded.calls import Answer, Failure, Outcome, Request
from iii_embedded.registry import DEFAULT, Function, Registry
from iii_kit.logs import logger
from iii_kit.world import Ids

QUEUE_PROVIDER = "engine::queue::enqueue"
"""The function that takes what the enqueue action hands over (engine spec 6.2)."""

NO_QUEUE = Failure(
    "enqueue_error", "No queue provider is installed. Run `iii worker add queue` to install one, then enqueue again."
)

FUNCTION_ENTRY = "iii.function.id"

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

_log = logger(__name__)


class Router:
    """Finds the function of a call and hands it over. Never waits: outcomes come through `Answer`."""

    def __init__(self, registry: Registry, ids: Ids) -> None:
        self._registry = registry
        self._ids = ids

    def resolve(self, namespace: str, function_id: str) -> Function | Failure:
        """The callable function of that address, or why there is none."""
        function = self._registry.functions.get((namespace, function_id))
        if function is None:
            return self.missing(namespace, function_id)
        if function.http:
            return Failure("function_not_invokable", f"Function {function_id} has no handler that can be called")
        return function

    def route(self, request: Request, answer: Answer | None) -> None:
        """Hand the call to the owner of its function; without `answer` nobody hears how it ends."""
        function = self.resolve(request.namespace, request.function_id)
        if isinstance(function, Failure):
            refuse(request, answer, function)
            return
        if request.traceparent is not None or request.baggage is not None:
            request.traceparent, request.baggage = carried(request.traceparent, request.baggage, function)
        function.owner.execute(function, request, answer)

    def enqueue(self, request: Request, queue: str, answer: Answer | None) -> None:
        """Hand a call to the queue provider; the answer is the receipt, or an `enqueue_error`."""
        receipt = self._ids.uuid()
        provider = self._registry.functions.get((DEFAULT, QUEUE_PROVIDER))
        if provider is None:
            refuse(request, answer, NO_QUEUE)
            return
        data = msgspec.Raw(request.data)
        handed = Request(
            QUEUE_PROVIDER,
            msgspec.json.encode(
                handed_over(
                    queue,
                    request.function_id,
                    request.namespace,
                    data,
                    receipt,
                    request.traceparent,
                    request.baggage,
                )
            ),
            worker=request.worker,
        )

        def settle(outcome: Outcome) -> None:
            if isinstance(outcome, Failure):
                refuse(request, answer, enqueue_failure(outcome))
            elif answer is not None:
                answer(b'{"messageReceiptId":"%b"}' % receipt.encode())

        provider.owner.execute(provider, handed, settle)

    def missing(self, namespace: str, function_id: str) -> Failure:
        """Why a call of a function that is not there fails; names where it does exist."""
        text = f"Function {function_id} not found in namespace {namespace}."
        elsewhere = self._registry.namespaces_of(function_id)
        if elsewhere:
            text += f" It is registered in namespace(s): {', '.join(elsewhere)}."
        return Failure("function_not_found", text)


def handed_over(
    queue: str,
    function_id: str,
    namespace: str,
    data: Any,
    receipt: str,
    traceparent: str | None,
    baggage: str | None,
) -> dict[str, Any]:
    """What the queue provider is called with for one call (engine spec 6.2)."""
    handed: dict[str, Any] = {
        "queue": queue,
        "function_id": function_id,
        "data": data,
        "messageReceiptId": receipt,
        "traceparent": readable(traceparent),
        "baggage": with_function(baggage, function_id),
    }
    if namespace != DEFAULT:
        handed["namespace"] = namespace
    return handed


def enqueue_failure(failure: Failure) -> Failure:
    """What the enqueuing caller gets when the provider failed."""
    return Failure("enqueue_error", f"{failure.code}: {failure.message}")


def refuse(request: Request, answer: Answer | None, failure: Failure) -> None:
    """Fail a call; where nobody waits for it, say so in the log."""
    if answer is not None:
        answer(failure)
    else:
        drop(request.function_id, failure)


def drop(function_id: str, failure: Failure) -> None:
    """Say in the log how a call failed that nobody waits for."""
    _log.warning("void_call_failed", function=function_id, code=failure.code, message=failure.message)


def carried(traceparent: str | None, baggage: str | None, function: Function) -> tuple[str | None, str | None]:
    """What travels beside a payload: a readable traceparent, and the called function in the baggage."""
    return readable(traceparent), baggage if function.owner.builtin else with_function(baggage, function.id)


@lru_cache(maxsize=4096)
def readable(traceparent: str | None) -> str | None:
    """The traceparent, or None when it is not one."""
    return traceparent if traceparent is not None and _TRACEPARENT.fullmatch(traceparent) else None


@lru_cache(maxsize=4096)
def with_function(baggage: str | None, function_id: str) -> str:
    """The baggage with `iii.function.id` set to the called function; every other entry stays as it is."""
    entry = _function_entry(function_id)
    if not baggage:
        return entry
    kept = [item for item in baggage.split(",") if item.split("=", 1)[0].strip() != FUNCTION_ENTRY]
    return ",".join([*kept, entry])


@lru_cache(maxsize=4096)
def _function_entry(function_id: str) -> str:
    return f"{FUNCTION_ENTRY}={quote(function_id, safe=':')}"
