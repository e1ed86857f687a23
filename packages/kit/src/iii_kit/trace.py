"""Trace context and baggage as they travel with calls (engine spec 7, 21.11, harness-loop 17).

Works on the OpenTelemetry API alone and costs next to nothing where nobody traces: an empty context gives the empty
carrier without running a propagator. The calls of one step carry the same few texts over and over, so texts are parsed
and written once and remembered; contexts are immutable and shared.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import Token
from functools import lru_cache
from types import TracebackType
from typing import Final, NamedTuple
from urllib.parse import quote_plus, unquote_plus

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

_AS_IT_IS: Final = nullcontext()
_CARRIER: Final = "iii_carrier"
"""Attribute of a context that remembers its carrier: a context never changes."""

_BAGGAGE: Final = next(iter(otel_baggage.set_baggage("name", "value", Context())))
"""Where a context keeps its baggage."""

_ENTRY: Final = r"[\w.~-]{1,256}=[\w.~:%+/-]{0,1024}"
_PLAIN_BAGGAGE: Final = re.compile(f"{_ENTRY}(?:,{_ENTRY}){{0,31}}", re.ASCII)
"""Baggage without properties, spaces and limits to mind: what workers of this project send."""

_spans = TraceContextTextMapPropagator()
_baggage = W3CBaggagePropagator()


def carrier() -> Carrier:
    """The carrier of the current context."""
    context = otel_context.get_current()
    if not context:
        return NOTHING
    memory = vars(context)
    carried: Carrier | None = memory.get(_CARRIER)
    if carried is None:
        entries = otel_baggage.get_all(context)
        carried = Carrier(_traceparent(context), _baggage_text(tuple(entries.items())) if entries else None)
        memory[_CARRIER] = carried
    return carried


def received(carried: Carrier) -> AbstractContextManager[None]:
    """Work inside the context that a frame carried, and in no other: nothing of the surrounding one stays visible."""
    if carried == NOTHING and not otel_context.get_current():
        return _AS_IT_IS
    return _Within(_context(carried))


def enter(carried: Carrier) -> None:
    """`received` for the rest of a task that has a context of its own."""
    otel_context.attach(_context(carried))


class _Within:
    """Work inside a context."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._token: Token[Context] = otel_context.attach(self._context)

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        otel_context.detach(self._token)


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


def tagged(entries: Mapping[str, str]) -> AbstractContextManager[None]:
    """Work with these baggage entries set: spans started inside carry them as attributes, calls as baggage."""
    context = otel_context.get_current()
    return _Within(otel_context.set_value(_BAGGAGE, {**otel_baggage.get_all(context), **entries}, context))


class Spanned:
    """Work inside a new span of its own, with these baggage entries set for it and everything below it."""

    __slots__ = ("_context", "_span", "_token")

    def __init__(self, tracer: otel_trace.Tracer, name: str, entries: Mapping[str, str]) -> None:
        outer = otel_context.get_current()
        tags = otel_context.set_value(_BAGGAGE, {**otel_baggage.get_all(outer), **entries}, outer)
        self._span = tracer.start_span(name, context=tags)
        self._context = otel_trace.set_span_in_context(self._span, tags)

    def __enter__(self) -> otel_trace.Span:
        self._token: Token[Context] = otel_context.attach(self._context)
        return self._span

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        otel_context.detach(self._token)
        if isinstance(error, Exception):
            self._span.record_exception(error)
            self._span.set_status(otel_trace.Status(otel_trace.StatusCode.ERROR, f"{type(error).__name__}: {error}"))
        self._span.end()


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
def _baggage_text(entries: tuple[tuple[str, object], ...]) -> str:
    """As the propagator writes it, which quotes every entry anew."""
    return ",".join(f"{_quoted(name)}={_quoted(str(value))}" for name, value in entries)


_quoted = lru_cache(maxsize=4096)(quote_plus)


@lru_cache(maxsize=1024)
def _context(carried: Carrier) -> Context:
    context = Context()
    if carried.traceparent:
        context = _spans.extract({"traceparent": carried.traceparent}, context)
    if carried.baggage:
        context = _with_baggage(carried.baggage, context)
    return context


def _with_baggage(text: str, context: Context) -> Context:
    """The context with the baggage of a frame; the propagator reads what is out of the ordinary."""
    if _PLAIN_BAGGAGE.fullmatch(text) is None:
        return _baggage.extract({"baggage": text}, context)
    entries = (entry.split("=", 1) for entry in text.split(","))
    return otel_context.set_value(_BAGGAGE, {name: unquote_plus(value) for name, value in entries}, context)
