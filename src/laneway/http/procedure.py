"""The steps of both clients: send, retry, follow a stream.

A procedure is a generator. It yields steps and receives the result of each; a runner runs them.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal, NamedTuple, TypeVar, cast
from uuid import UUID

from laneway.domain.duration import check_wait
from laneway.domain.flow import Flow, check_completed
from laneway.domain.job import Job
from laneway.domain.states import Status
from laneway.errors import (
    JobFailed,
    LanewayError,
    QuotaExceeded,
    RateLimited,
    ServerError,
    ServerUnreachable,
)
from laneway.http import decode
from laneway.http.call import Call, CallResponse, in_path
from laneway.http.models import Event
from laneway.http.problems import error_of
from laneway.http.sse import Parser, SseMessage

T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
# A longer Retry-After is not waited for.
LONGEST_RETRY_AFTER_S: Final = 60.0
# The server sends at least a comment every 15 s; after this silence the connection is dead.
SILENCE_S: Final = 45.0
RECONNECTS: Final = 10
# A wait with timeout 0 still reads the job once.
_ONE_LOOK_S: Final = 1.0
# A wait may end this much late, or a fifth of its timeout.
_LATE_S: Final = 0.25
_AGAIN: Final = (429, 502, 503, 504)
_UNDER_WAY: Final = "idempotency_under_way"


# -- steps ------------------------------------------------------------------------------------


class Send(NamedTuple):
    """Send a request; its result is a Reply."""

    call: Call[Any]


class Open(NamedTuple):
    """Open a stream for the ReadBytes steps that follow; its result is a Reply."""

    path: str
    params: tuple[tuple[str, str], ...]
    last_id: str | None
    silence_s: float


class ReadBytes(NamedTuple):
    """Read the stream; its result is bytes, or None when the stream has ended or is lost."""


class Close(NamedTuple):
    """Close the stream."""


class Pause(NamedTuple):
    """Sleep."""

    seconds: float


class Emit(NamedTuple):
    """Pass an event to the caller."""

    event: Event


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a request; `lost` says why there is none."""

    status: int = 0
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    lost: str | None = None
    url: str = ""

    @property
    def is_success(self) -> bool:
        return self.lost is None and 200 <= self.status < 300

    @property
    def error(self) -> LanewayError:
        if self.lost is not None:
            return ServerUnreachable(self.lost)
        error = error_of(self.status, self.body, self.url)
        if isinstance(error, RateLimited):
            error.retry_after = self.retry_after or error.retry_after
        return error

    @property
    def retry_after(self) -> float | None:
        """The seconds that the server's Retry-After header asks for."""
        return retry_after(self.headers.get("retry-after", ""))


Step = Send | Open | ReadBytes | Close | Pause | Emit
Procedure = Generator[Step, Any, T]
# Why a connection is closed: last event received, connection lost, or its timeout is too long.
CloseReason = Literal["over", "lost", "late"]


# -- one call ---------------------------------------------------------------------------------


def perform(call: Call[T], retries: int) -> Procedure[T]:
    """Send a call; retry it if it is repeatable and the error may pass."""
    for pause in _pauses(retries):
        reply: Reply = yield Send(call)
        if reply.is_success:
            return _decoded(call, reply)
        wait = _wait(call, reply, pause)
        if wait is None:
            break
        yield Pause(wait)
    raise reply.error


def _pauses(retries: int) -> Iterator[float | None]:
    """The pause after each try; None after the last."""
    pause = FIRST_PAUSE_S
    for _ in range(retries):
        yield random.uniform(pause / 2, pause)
        pause = min(LONGEST_PAUSE_S, pause * 2)
    yield None


def _wait(call: Call[T], reply: Reply, pause: float | None) -> float | None:
    """Seconds until the next try; None if there is none."""
    if pause is None or not call.is_repeatable:
        return None
    if reply.lost is not None:
        return pause
    problem = reply.body if isinstance(reply.body, dict) else {}
    if problem.get("code") == QuotaExceeded.code:
        # The quota frees when jobs end, which may take hours: the caller decides.
        return None
    if reply.status not in _AGAIN and problem.get("code") != _UNDER_WAY:
        return None
    requested = reply.retry_after
    if requested is None:
        return pause
    return max(requested, pause) if requested <= LONGEST_RETRY_AFTER_S else None


def retry_after(text: str) -> float | None:
    """Parse a Retry-After header, a number or a date, into seconds."""
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    zoned = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, (zoned - datetime.now(UTC)).total_seconds())


def _decoded(call: Call[T], reply: Reply) -> T:
    try:
        return call.decode(CallResponse(reply.status, reply.body))
    except (KeyError, TypeError, AttributeError) as error:
        raise ServerError(f"the server's response could not be decoded: {error!r}") from error


# -- streams ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventSource:
    """The events of a path, until the job or the flow that they are about has ended."""

    path: str
    params: tuple[tuple[str, str], ...] = ()
    last_id: str | None = None
    until: Literal["job", "flow"] | None = None

    def ends_with(self, event: Event) -> bool:
        """Whether no event follows this one."""
        if self.until == "flow":
            return event.flow is not None and event.flow.is_over
        return self.until == "job" and event.is_last


def of_job(job_id: UUID, last_id: str | None = None) -> EventSource:
    return EventSource(f"/jobs/{in_path(job_id)}/stream", (), last_id, "job")


def of_flow(flow_id: UUID) -> EventSource:
    return EventSource(f"/flows/{in_path(flow_id)}/stream", until="flow")


def follow(
    stream: EventSource,
    deadline: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Procedure[None]:
    """Emit events, resuming after the last one whenever the connection is lost.

    A job's stream ends with the job. Past the `deadline`, raise TimeoutError.
    """
    last_id = stream.last_id
    tries = list(_pauses(RECONNECTS))
    if deadline is not None:
        deadline = max(deadline, clock() + _ONE_LOOK_S)
    while True:
        silence = SILENCE_S if deadline is None else min(SILENCE_S, deadline - clock())
        if silence <= 0:
            raise TimeoutError
        reply: Reply = yield Open(stream.path, stream.params, last_id, silence)
        parser = Parser(last_id)
        reason: CloseReason = "lost"
        if reply.is_success:
            if reply.status == 204:
                # The event of last_id was the last one.
                return
            reason = yield from _read(stream, parser, deadline, silence, clock)
        yield Close()
        if reason == "over":
            return
        if not reply.is_success and reply.lost is None and reply.status not in _AGAIN:
            raise reply.error
        if reply.is_success and parser.is_alive:
            last_id, tries = parser.last_id, list(_pauses(RECONNECTS))
            if parser.retry_ms is not None:
                tries[0] = parser.retry_ms / 1000
        if reason == "late":
            # The server responds: reconnect at once.
            continue
        pause = tries.pop(0)
        if pause is None:
            raise reply.error if not reply.is_success else ServerUnreachable("the stream was lost")
        pause = max(pause, min(reply.retry_after or 0.0, LONGEST_RETRY_AFTER_S))
        yield Pause(pause if deadline is None else max(0.0, min(pause, deadline - clock())))


def _read(
    stream: EventSource,
    parser: Parser,
    deadline: float | None,
    silence: float,
    clock: Callable[[], float],
) -> Procedure[CloseReason]:
    """Emit the events of one connection; return why it is closed."""
    while True:
        chunk: bytes | None = yield ReadBytes()
        if chunk is None:
            return "lost"
        for message in parser.feed(chunk):
            event = _event(message)
            yield Emit(event)
            if stream.ends_with(event):
                return "over"
        if deadline is None:
            continue
        now = clock()
        if now >= deadline or now + silence - deadline > max(0.2 * silence, _LATE_S):
            # Its read timeout reaches past the deadline: reconnect with a shorter one.
            return "late"


def _event(message: SseMessage) -> Event:
    try:
        return decode.event(message.id, message.event, json.loads(message.data))
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError):
        raise ServerError(f"the server's event {message.event} could not be decoded") from None


def wait(job_id: UUID, timeout: float | timedelta | None = None) -> Procedure[object]:
    """Wait for the job's result; raise JobFailed, or TimeoutError after `timeout`."""
    last = yield from _last_event(of_job(job_id), f"job {job_id}", timeout)
    return _outcome(cast("Job", last.job))


def wait_flow(flow_id: UUID, timeout: float | timedelta | None = None) -> Procedure[Flow]:
    """Wait for the flow's end; raise JobFailed, or TimeoutError after `timeout`."""
    last = yield from _last_event(of_flow(flow_id), f"flow {flow_id}", timeout)
    return check_completed(cast("Flow", last.flow))


def _last_event(
    stream: EventSource, subject: str, timeout: float | timedelta | None
) -> Procedure[Event]:
    """The event with which a stream ends; TimeoutError after `timeout`."""
    timeout_s = None if timeout is None else check_wait(timeout, "timeout")
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    steps = follow(stream, deadline)
    reply: Any = None
    try:
        while True:
            step = steps.send(reply)
            if not isinstance(step, Emit):
                reply = yield step
                continue
            reply = None
            if stream.ends_with(step.event):
                yield Close()
                return step.event
    except StopIteration:
        raise ServerError(f"the stream of {subject} ended before the {stream.until} did") from None
    except TimeoutError:
        raise TimeoutError(f"{subject} did not end within {timeout_s:g} s") from None


def _outcome(job: Job) -> object:
    if job.status is Status.COMPLETED:
        return job.result
    verb = "was cancelled" if job.status is Status.CANCELLED else "failed"
    raise JobFailed(f"job {job.id} {verb}{job.why_ended}")
