"""Trace context and baggage as they travel with calls (engine spec 7, 21.11, harness-loop 17).

Works on the OpenTelemetry API alone and costs next to nothing where nobody traces: an empty context gives the empty
carrier without running a propagator. The calls of one step carry the same few texts over and over, so texts are parsed
and written once and remembered; contexts are immutable and shared.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import NamedTuple

from opentelemetry import baggage as otel_baggage
from opentelemetry import context as otel_context
from opentelemetry import trace as otel_trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator


class Carrier(NamedTuple):
    """What a frame carries of the context of its sender."""

    traceparent: str | None = None
    baggage: str | None = None


NOTHING = Carrier()
"""Neither a span nor baggage."""

HIDDEN = "iii.tag.hidden"
"""Baggage of calls that are bookkeeping (harness-loop 17)."""

_AS_IT_IS = nullcontext()
_spans = TraceContextTextMapPropagator()
_baggage = W3CBaggagePropagator()


def carrier() -> Carrier:
    """The carrier of the current context."""
    context = otel_context.get_current()
    if not context:
        return NOTHING
    entries = otel_baggage.get_all(context)
    return Carrier(_traceparent(context), _baggage_text(tuple(entries.items())) if entries else None)


@contextmanager
def received(carried: Carrier) -> Generator[None]:
    """Work inside the context that a frame carried, and in no other: nothing of the surrounding one stays visible."""
    if carried == NOTHING and not otel_context.get_current():
        yield
        return
    token = otel_context.attach(_context(carried))
    try:
        yield
    finally:
        otel_context.detach(token)


@contextmanager
def with_baggage_of(text: str | None) -> Generator[None]:
    """Work with the baggage that came along; the current span stays (engine spec 21.11: the SDK hands on none)."""
    if not text:
        yield
        return
    token = otel_context.attach(_baggage.extract({"baggage": text}, otel_context.get_current()))
    try:
        yield
    finally:
        otel_context.detach(token)


@contextmanager
def tagged(entries: Mapping[str, str]) -> Generator[None]:
    """Work with these baggage entries set: spans started inside carry them as attributes, calls as baggage."""
    context = otel_context.get_current()
    for name, value in entries.items():
        context = otel_baggage.set_baggage(name, value, context)
    token = otel_context.attach(context)
    try:
        yield
    finally:
        otel_context.detach(token)


def hidden(name: str | None) -> AbstractContextManager[None]:
    """Work whose spans viewers leave out, as bookkeeping called `name`; nothing at all where nobody traces."""
    if name is None or not otel_trace.get_current_span().get_span_context().is_valid:
        return _AS_IT_IS
    return tagged({HIDDEN: name})


def _traceparent(context: Context) -> str | None:
    span = otel_trace.get_current_span(context).get_span_context()
    if not span.is_valid:
        return None
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"


@lru_cache(maxsize=1024)
def _baggage_text(entries: tuple[tuple[str, object], ...]) -> str | None:
    context = Context()
    for name, value in entries:
        context = otel_baggage.set_baggage(name, value, context)
    texts: dict[str, str] = {}
    _baggage.inject(texts, context)
    return texts.get("baggage")


@lru_cache(maxsize=1024)
def _context(carried: Carrier) -> Context:
    context = Context()
    if carried.traceparent:
        context = _spans.extract({"traceparent": carried.traceparent}, context)
    if carried.baggage:
        context = _baggage.extract({"baggage": carried.baggage}, context)
    return context
