"""Traces: the only module that uses OpenTelemetry, if the application set it up.

A submit is a span `send <job type>`, each attempt a span `process <job type>`. The job carries the
W3C traceparent of its submit: the first attempt is its child, later attempts are new traces with a
link to it. Names follow the messaging conventions of OpenTelemetry.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from laneway.domain.approval import analysed_type, is_analysis
from laneway.observability.log_throttle import LogThrottle

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext, Tracer

_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_LENGTH: Final = 55
_SYSTEM: Final = "laneway"

_warnings: Final = LogThrottle(interval_s=60.0)

# The traceparent of the current request, or of the worker of this child process.
_received: ContextVar[str | None] = ContextVar("laneway traceparent", default=None)


def is_on() -> bool:
    """Whether the application has set up a tracer, and so imported OpenTelemetry."""
    api = sys.modules.get("opentelemetry.trace")
    proxy = getattr(api, "ProxyTracerProvider", None)
    return (
        api is not None and proxy is not None and not isinstance(api.get_tracer_provider(), proxy)
    )


def read_traceparent(text: str | None) -> str | None:
    """The W3C traceparent as jobs store it; None if the text is invalid."""
    found = None if text is None else _TRACEPARENT.match(text.strip())
    if found is None or not found[1].strip("0") or not found[2].strip("0"):
        return None
    if len(text or "") > _LENGTH and (text or "")[:2] == "00":
        return None
    return f"00-{found[1]}-{found[2]}-{found[3]}"


def receive(text: str | None) -> Token[str | None] | None:
    """Joins the caller's trace in this context; None if the text is not a traceparent."""
    given = read_traceparent(text)
    return None if given is None else _received.set(given)


def forget(token: Token[str | None]) -> None:
    """Leaves the trace that `receive` joined, once the request is answered."""
    _received.reset(token)


def traceparent() -> str | None:
    """The traceparent of the running code, for jobs that it submits."""
    if is_on():
        from opentelemetry import trace

        current = trace.get_current_span().get_span_context()
        if current.is_valid:
            return _format(current)
    return _received.get()


def trace_id() -> str | None:
    """The id of the current trace, for log lines."""
    current = traceparent()
    return None if current is None else current[3:35]


class Sending:
    """The span of a submit in progress."""

    __slots__ = ("_span",)

    def __init__(self, span: Span | None) -> None:
        self._span = span

    def record(self, job_id: UUID, *, duplicate: bool) -> None:
        """Records the job that was stored, or found as a duplicate."""
        if self._span is not None:
            self._span.set_attribute("messaging.message.id", str(job_id))
            if duplicate:
                self._span.set_attribute("laneway.duplicate", True)


_NOT_SENDING: Final = Sending(None)


@contextmanager
def sending(*job_types: str, count: int | None = None) -> Iterator[Sending]:
    """The span of a submit, or of a batch of `count`; jobs made inside carry its traceparent."""
    if not is_on():
        yield _NOT_SENDING
        return
    from opentelemetry import context, trace

    parent = context.get_current()
    given = _received.get()
    if given is not None and not trace.get_current_span().get_span_context().is_valid:
        parent = trace.set_span_in_context(trace.NonRecordingSpan(_context(given)), parent)
    attributes: dict[str, Any] = {
        "messaging.system": _SYSTEM,
        "messaging.operation.type": "send",
        "messaging.operation.name": "submit",
    }
    name = "send batch"
    if len(job_types) == 1:
        name, attributes["messaging.destination.name"] = f"send {job_types[0]}", job_types[0]
    if count is not None:
        attributes["messaging.batch.message_count"] = count
    with _SafeSpan(
        _tracer().start_as_current_span(
            name, parent, kind=trace.SpanKind.PRODUCER, attributes=attributes
        )
    ) as span:
        yield Sending(span)


class _SafeSpan:
    """A span around code that must not fail, or run twice, because a tracer fails."""

    def __init__(self, span: AbstractContextManager[Span]) -> None:
        self._span = span
        self._is_entered = False

    def __enter__(self) -> Span | None:
        try:
            span = self._span.__enter__()
        except Exception as error:
            _warn(error)
            return None
        self._is_entered = True
        return span

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._is_entered:
            return
        try:
            self._span.__exit__(kind, error, trace)
        except Exception as broken:
            if broken is not error:
                _warn(broken)


def _warn(error: Exception) -> None:
    """Logs that the application's tracer fails, at most once a minute."""
    _warnings.warn("traces are not written", repr(error))


class AttemptSpan:
    """The span of one attempt, current in the code that runs the handler."""

    __slots__ = ("_span",)

    def __init__(self, span: Span) -> None:
        self._span = span

    @property
    def traceparent(self) -> str:
        """The traceparent for the handler's child process."""
        return _format(self._span.get_span_context())

    def end(self, outcome: str, error: str | None) -> None:
        """Ends the span; `error` is the stored JSON with type, message and traceback."""
        try:
            self._end(outcome, error)
        except Exception as broken:
            # A failing tracer must not undo the end of the job.
            _warn(broken)

    def _end(self, outcome: str, error: str | None) -> None:
        from opentelemetry.trace import Status, StatusCode

        self._span.set_attribute("laneway.outcome", outcome)
        if error is not None:
            details = json.loads(error)
            self._span.set_attribute("error.type", details["type"])
            self._span.add_event(
                "exception",
                {
                    "exception.type": details["type"],
                    "exception.message": details["message"],
                    "exception.stacktrace": details.get("traceback", ""),
                },
            )
            self._span.set_status(Status(StatusCode.ERROR, details["message"]))
        elif outcome == "void":
            self._span.set_status(Status(StatusCode.ERROR, "superseded"))
        self._span.end()


def begin(
    job_type: str,
    job_id: UUID,
    attempt: int,
    *,
    lane: str,
    worker: str,
    origin: str | None,
) -> AttemptSpan | None:
    """Starts the span of an attempt and makes it current; the context must end with the attempt.

    `origin` is the traceparent of the job.
    """
    if not is_on():
        return None
    try:
        return _begin(job_type, job_id, attempt, lane=lane, worker=worker, origin=origin)
    except Exception as error:
        _warn(error)
        return None


def _begin(
    job_type: str, job_id: UUID, attempt: int, *, lane: str, worker: str, origin: str | None
) -> AttemptSpan:
    from opentelemetry import context, trace

    name = analysed_type(job_type)
    parent, links = context.Context(), []
    given = read_traceparent(origin)
    if given is not None and attempt == 1:
        parent = trace.set_span_in_context(trace.NonRecordingSpan(_context(given)), parent)
    elif given is not None:
        links = [trace.Link(_context(given))]
    span = _tracer().start_span(
        f"process {name}",
        parent,
        kind=trace.SpanKind.CONSUMER,
        links=links,
        attributes={
            "messaging.system": _SYSTEM,
            "messaging.operation.type": "process",
            "messaging.operation.name": "analyze" if is_analysis(job_type) else "run",
            "messaging.destination.name": name,
            "messaging.message.id": str(job_id),
            "messaging.client.id": worker,
            "laneway.lane": lane,
            "laneway.attempt": attempt,
        },
    )
    context.attach(trace.set_span_in_context(span))
    return AttemptSpan(span)


def adopt(text: str | None) -> None:
    """Joins the attempt's trace in a child process."""
    given = read_traceparent(text)
    if given is None:
        return
    _received.set(given)
    if is_on():
        from opentelemetry import context, trace

        span = trace.NonRecordingSpan(_context(given))
        context.attach(trace.set_span_in_context(span, context.Context()))


def _tracer() -> Tracer:
    from opentelemetry import trace

    return trace.get_tracer("laneway")


def _context(text: str) -> SpanContext:
    from opentelemetry.trace import SpanContext, TraceFlags

    _, trace, span, flags = text.split("-")
    return SpanContext(int(trace, 16), int(span, 16), True, TraceFlags(int(flags, 16)))


def _format(span: SpanContext) -> str:
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"
