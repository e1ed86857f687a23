"""Why a turn failed: codes, classes and the summaries people read (harness-loop 11.2)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from iii_contracts.messages import RETRYABLE

OVERFLOW: Final = "harness.context_overflow"
EMPTY_CONTEXT: Final = "harness.empty_context"
ENQUEUE_FAILED: Final = "harness.enqueue_failed"
INTERNAL: Final = "harness.turn_internal"

ROUTER_SUMMARIES: Final = {
    "router/not_configured": "The provider is not configured; open the router settings and add its key or address.",
    "router/provider_unavailable": "The provider is temporarily unavailable; retry, or choose another one.",
    "router/unknown_provider": "The provider is no longer registered.",
    "router/no_provider_for_model": "No provider serves this model.",
    "router/ambiguous_model": "Several providers serve this model; name one.",
    "router/invalid_request": "The request to the model was invalid.",
    "router/structured_output_unsupported": "The model does not support structured output.",
    "router/request_in_progress": "A generation with the same request id is still running.",
    "router/capacity_exceeded": "The provider is busy; wait a moment and retry.",
    "router/provider_rate_limited": "The provider is busy; wait a moment and retry.",
    "router/stream_setup_failed": "The answer could not be started.",
    "router/stream_idle_timeout": "The provider went silent.",
    "router/stream_incomplete": "The provider disconnected before it finished.",
    "router/provider_auth_expired": "The provider's credentials need attention.",
    "router/context_overflow": "The conversation is too large for the model.",
    "router/provider_transient": "The provider had a temporary failure.",
    "router/provider_rejected": "The provider rejected the request.",
}

KIND_SUMMARIES: Final = {
    "auth_expired": "The provider's credentials need attention.",
    "rate_limited": "The provider is busy; wait a moment and retry.",
    "context_overflow": "The conversation is too large for the model.",
    "transient": "The provider had a temporary failure.",
}

OWN_SUMMARIES: Final = {
    OVERFLOW: "The conversation could not be compacted to fit the model.",
    EMPTY_CONTEXT: "There is nothing to send to the model.",
    ENQUEUE_FAILED: "The turn could not be scheduled.",
}

OWN_CLASSES: Final = {OVERFLOW: "llm.context_overflow", ENQUEUE_FAILED: "llm.transient"}

NEXT_ACTIONS: Final = {
    "llm.auth_expired": ["Check the provider's key in the router settings.", "Send the message again."],
    "llm.rate_limited": ["Wait a moment.", "Send the message again."],
    "llm.transient": ["Send the message again."],
    "llm.context_overflow": ["Start a new session, or choose a model with a larger window."],
    "llm.permanent": ["Check the model and the provider's settings.", "Send the message again."],
}


class Failure(msgspec.Struct, frozen=True):
    """One failed turn, as its `error` entry tells it."""

    code: str
    phase: str
    klass: str
    summary: str
    detail: str
    retryable: bool


def generation_failure(message: dict[str, Any], error: dict[str, Any] | None) -> Failure:
    """The failure of a generation: the response's `error` rules over the text of the frame."""
    response = error or {}
    kind: str | None = response.get("kind") or message.get("error_kind")
    code = _text(response.get("code"))
    if code and not code.startswith("router/"):
        kind, code = (kind or code if code in _KINDS else kind), ""
    kind = kind if kind in _KINDS else None
    detail = _text(response.get("detail")) or _text(response.get("message")) or _text(message.get("error_message"))
    flag = response.get("retryable")
    retryable = flag if isinstance(flag, bool) else kind in RETRYABLE
    detail = detail or "the generation failed without a cause"
    return Failure(
        code=code or (f"llm.{kind}" if kind else "llm.generation_failed"),
        phase="generation",
        klass=f"llm.{kind}" if kind else ("llm.transient" if retryable else "llm.permanent"),
        summary=ROUTER_SUMMARIES.get(code) or KIND_SUMMARIES.get(kind or "") or detail,
        detail=detail,
        retryable=retryable,
    )


def own_failure(code: str, phase: str, detail: str) -> Failure:
    """A failure that the harness itself found."""
    klass = OWN_CLASSES.get(code, "llm.permanent")
    return Failure(code, phase, klass, OWN_SUMMARIES.get(code, detail), detail, klass == "llm.transient")


_KINDS: Final = frozenset({"auth_expired", "rate_limited", "context_overflow", "transient", "permanent"})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
