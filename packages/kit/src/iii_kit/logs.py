"""Logs of a process: structlog, one JSON object per line on stderr, with the session, turn and trace it speaks of.

Records of the standard library's loggers (the SDK, websockets, uvicorn) take the same form. Secrets and payloads never
go into a log line: callers log ids, codes and counts.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

from opentelemetry import trace

from iii_kit.plain_structlog import structlog

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def _quiet() -> None:
    """Without `configure`, lines go to the standard library's logging: a library prints nothing by itself."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=str),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


_quiet()


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Set up logging for the whole process; again replaces the set-up."""
    shared = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_trace,
        structlog.processors.format_exc_info,
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(default=str),
        ],
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[level])
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of a module: `log = logger(__name__)`, then `log.info("turn_started", turn=...)`."""
    return structlog.stdlib.get_logger(name)


about = structlog.contextvars.bound_contextvars
"""`with about(session=..., turn=...)`: every line logged inside says so."""


def _add_trace(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    span = trace.get_current_span().get_span_context()
    if span.is_valid:
        event["trace"] = trace.format_trace_id(span.trace_id)
    return event
