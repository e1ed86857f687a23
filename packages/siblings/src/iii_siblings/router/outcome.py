"""How an attempt at a stream ended, and the frames and answers that follow from it (siblings 5.5, 5.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import msgspec

from iii_contracts.messages import RETRYABLE
from iii_contracts.router import CODE_OF_KIND

Interrupt: TypeAlias = Literal["abort", "gone", "idle", "total", "drain"]
"""Why a stream was cut short from this side."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The provider ended its stream with a terminal frame."""

    message: dict[str, Any]
    item: str | bytes
    failed: bool
    retry_after_ms: float | None = None

    @property
    def kind(self) -> str:
        """The error kind of a failed answer."""
        kind = self.message.get("error_kind")
        return kind if kind in CODE_OF_KIND else "permanent"


@dataclass(frozen=True, slots=True)
class Broken:
    """The stream ended by itself without a terminal frame, or never began."""

    code: str
    text: str
    kind: str = "transient"
    retryable: bool = True


@dataclass(frozen=True, slots=True)
class Cut:
    """The stream was cut short from this side."""

    why: Interrupt


Outcome: TypeAlias = Answered | Broken | Cut


def error_kind(outcome: Outcome) -> str | None:
    """The error kind of an attempt that may be made again, else None."""
    if isinstance(outcome, Answered):
        return outcome.kind if outcome.failed and outcome.kind in RETRYABLE else None
    if isinstance(outcome, Broken):
        return outcome.kind if outcome.retryable else None
    return None


def assistant(provider: str, model: str, now_ms: int) -> dict[str, Any]:
    """An assistant message without content."""
    return {
        "role": "assistant",
        "content": [],
        "stop_reason": "end",
        "model": model,
        "provider": provider,
        "timestamp": now_ms,
    }


def error_message(base: dict[str, Any], text: str, kind: str) -> dict[str, Any]:
    """`base` as the message of an error frame; what was streamed stays in it."""
    return {**base, "stop_reason": "error", "error_message": text, "error_kind": kind}


def frame(kind: Literal["done", "error"], message: dict[str, Any]) -> str:
    """A terminal frame."""
    key = "message" if kind == "done" else "error"
    return msgspec.json.encode({"type": kind, key: message}).decode()


def error_answer(message: dict[str, Any], code: str, detail: Any = None) -> dict[str, Any]:
    """The `error` of a response."""
    kind = str(message.get("error_kind"))
    shown: dict[str, Any] = {
        "code": code,
        "message": str(message.get("error_message") or ""),
        "kind": kind,
        "retryable": kind in RETRYABLE,
    }
    return shown if detail is None else {**shown, "detail": detail}


def usage_of(message: dict[str, Any], running: dict[str, Any] | None) -> dict[str, Any] | None:
    """The usage of a final message, else the running one."""
    usage = message.get("usage")
    return cast("dict[str, Any]", usage) if isinstance(usage, dict) else running
