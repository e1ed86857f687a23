"""Failure codes, classes and summaries (harness-loop 11.2)."""

from __future__ import annotations

import pytest

from iii_harness.decide.failure import ROUTER_SUMMARIES, generation_failure, own_failure


@pytest.mark.requirement("loop.failure.router")
@pytest.mark.parametrize("code", sorted(ROUTER_SUMMARIES))
def test_every_router_code_has_its_own_summary(code):
    failure = generation_failure({}, {"code": code, "message": "m", "detail": "d", "kind": "permanent"})
    assert (failure.code, failure.klass, failure.detail) == (code, "llm.permanent", "d")
    assert failure.summary == ROUTER_SUMMARIES[code]


@pytest.mark.requirement("loop.failure.kind")
@pytest.mark.parametrize(
    ("message", "error", "code", "klass", "retryable"),
    [
        ({"error_kind": "rate_limited", "error_message": "m"}, None, "llm.rate_limited", "llm.rate_limited", True),
        ({"error_kind": "transient"}, {"kind": "auth_expired"}, "llm.auth_expired", "llm.auth_expired", False),
        ({}, {"code": "transient", "message": "m"}, "llm.transient", "llm.transient", True),
        ({}, {"message": "odd", "retryable": True}, "llm.generation_failed", "llm.transient", True),
        ({}, None, "llm.generation_failed", "llm.permanent", False),
        (
            {},
            {"code": "router/new_code", "message": "m", "kind": "transient"},
            "router/new_code",
            "llm.transient",
            True,
        ),
    ],
)
def test_without_a_router_code_the_kind_decides(message, error, code, klass, retryable):
    failure = generation_failure(message, error)
    assert (failure.code, failure.klass, failure.retryable) == (code, klass, retryable)
    assert failure.summary and failure.detail


@pytest.mark.requirement("loop.failure.own")
def test_own_failures_have_their_class():
    assert own_failure("harness.enqueue_failed", "scheduling", "d").klass == "llm.transient"
    assert own_failure("harness.context_overflow", "context_assembly", "d").klass == "llm.context_overflow"
    assert own_failure("harness.turn_internal", "execution", "the error").summary == "the error"
