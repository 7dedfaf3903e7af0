"""The state of one attempt in a worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

from laneway.domain.claim import Claim
from laneway.engine.registry import Handler
from laneway.store.leases import Assignment

if TYPE_CHECKING:
    from laneway.engine.claim.call_limits import HeldCalls
    from laneway.engine.process.loop_marker import LoopMarker
    from laneway.observability.tracing import AttemptSpan

StopReason = Literal["cancel", "timeout", "fenced", "shutdown"]
Place = Literal["worker", "child", "returned"]
# A job lost this often together with others, uncharged, runs in a child: it may be the cause.
SUSPECT_LOSSES = 2


class Run:
    """An attempt from its claim to its verdict."""

    __slots__ = (
        "assignment",
        "checkpoint",
        "claim",
        "ended",
        "grace",
        "handler",
        "has_reports",
        "held",
        "is_closed",
        "is_finishing",
        "lane",
        "log_lines",
        "losses",
        "mark",
        "on_begin",
        "open_requests",
        "payload",
        "place",
        "rank",
        "retries",
        "span",
        "started",
        "stop_reason",
        "stopper",
        "timeout",
        "timer",
        "traceparent",
    )

    def __init__(self, assignment: Assignment, handler: Handler, lane: str) -> None:
        self.assignment = assignment
        self.claim: Claim = assignment.claim
        self.payload = assignment.payload
        self.checkpoint = assignment.checkpoint
        self.retries = assignment.retries
        self.rank = assignment.rank
        self.losses = assignment.losses
        self.traceparent = assignment.traceparent
        self.handler = handler
        self.timeout = handler.timeout_s
        self.lane = lane
        # When the handler was called.
        self.started: float | None = None
        # The index of its mark in the memory that the supervisor reads.
        self.mark: int | None = None
        # "child": a suspect runs in a child process, whatever its isolation. "returned": no child
        # could call its handler.
        self.place: Place = "worker"
        self.stop_reason: StopReason | None = None
        # Stops the handler; set by the code that runs it.
        self.stopper: Callable[[], object] | None = None
        # Called when the handler is called, which may be long after the claim.
        self.on_begin: Callable[[], object] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.grace: asyncio.TimerHandle | None = None
        # True once a verdict was passed on; later reports and results of the handler are void.
        self.ended = False
        # The event loop closed the handler's coroutine, which may not await any more.
        self.is_closed = False
        self.has_reports = False
        self.log_lines = 0
        # The handler's own transaction may have ended the job: only the database knows.
        self.is_finishing = False
        self.span: AttemptSpan | None = None
        # The limits held for a call.
        self.held: HeldCalls | None = None
        # Requests that a handler outside the event loop waits for, by their task.
        self.open_requests: dict[asyncio.Task[Any], str] = {}

    def begin(self, marker: LoopMarker | None = None) -> None:
        """Start the handler's time: it is called now."""
        self.started = time.monotonic()
        if marker is not None:
            self.mark = marker.begin(self.claim.seq)
        if self.on_begin is not None:
            self.on_begin()

    def cancel_requests(self) -> None:
        """Cancel the open requests of a handler that should stop, but still store its steps."""
        for task, what in list(self.open_requests.items()):
            is_void = self.ended and what != "keep"
            if what == "acquire" or self.stop_reason == "fenced" or is_void:
                task.cancel()

    @property
    def is_suspect(self) -> bool:
        """Whether it must run in a child process, because it may have crashed its process."""
        handler = self.handler
        is_here = handler.isolation != "process" and not handler.is_analysis
        return is_here and self.losses >= SUSPECT_LOSSES

    @property
    def is_stopped(self) -> bool:
        """Whether the handler should stop."""
        return self.stop_reason is not None

    @property
    def ran_s(self) -> float | None:
        """Seconds since the handler was called; None before."""
        return None if self.started is None else time.monotonic() - self.started


# The run of the current code and the name of its worker, for log lines.
current_run: ContextVar[tuple[Run, str] | None] = ContextVar("laneway run", default=None)
