"""One attempt in the hands of a worker."""

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
Place = Literal["here", "apart", "returned"]
# A job that was lost so often together with others, and not charged, runs apart: it may be why.
SUSPECT_LOSSES = 2


class Run:
    """What the worker knows of an attempt from claim to verdict."""

    __slots__ = (
        "checkpoint",
        "claim",
        "ended",
        "grace",
        "handler",
        "held",
        "is_closed",
        "is_finishing",
        "lane",
        "line",
        "losses",
        "mark",
        "on_begin",
        "open_requests",
        "payload",
        "place",
        "rank",
        "reports",
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
        self.claim: Claim = assignment.claim
        self.payload = assignment.payload
        self.checkpoint = assignment.checkpoint
        self.retries = assignment.retries
        self.rank = assignment.rank
        self.losses = assignment.losses
        self.traceparent = assignment.traceparent
        self.handler = handler
        self.timeout = handler.timeout
        self.lane = lane
        # When its handler was called; None until then.
        self.started: float | None = None
        # Of its mark in the memory that the supervisor reads.
        self.mark: int | None = None
        # Apart: in a child process, whatever its handler says. Returned: no child could call it.
        self.place: Place = "here"
        self.stop_reason: StopReason | None = None
        # How to tell the handler to stop; set by whatever runs it.
        self.stopper: Callable[[], object] | None = None
        # What to do when the handler is called at last, which may be long after the claim.
        self.on_begin: Callable[[], object] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.grace: asyncio.TimerHandle | None = None
        # True once a verdict was passed on: what the handler still does or says is void.
        self.ended = False
        # Its coroutine is thrown away with the event loop: it may wait for nothing more.
        self.is_closed = False
        self.reports = False
        self.line = 0
        # The job may have ended in the handler's own transaction: only the database knows.
        self.is_finishing = False
        # Of its trace, where there is one.
        self.span: AttemptSpan | None = None
        # The limits held for a call.
        self.held: HeldCalls | None = None
        # What the handler waits for in a task that is not its own, and what that is.
        self.open_requests: dict[asyncio.Task[Any], str] = {}

    def begin(self, marker: LoopMarker | None = None) -> None:
        """The handler is called now: from here on its time counts."""
        self.started = time.monotonic()
        if marker is not None:
            self.mark = marker.begin(self.claim.seq)
        if self.on_begin is not None:
            self.on_begin()

    def break_off(self) -> None:
        """Ends the waiting of a handler that should stop; what it has done is still kept."""
        for task, what in list(self.open_requests.items()):
            is_void = self.ended and what != "keep"
            if what == "acquire" or self.stop_reason == "fenced" or is_void:
                task.cancel()

    @property
    def is_suspect(self) -> bool:
        """True where it must not take others along if it takes its process along."""
        handler = self.handler
        is_here = handler.isolation != "process" and not handler.is_analysis
        return is_here and self.losses >= SUSPECT_LOSSES

    @property
    def is_stopped(self) -> bool:
        """True once it was told to stop."""
        return self.stop_reason is not None

    @property
    def ran_s(self) -> float | None:
        """How long its handler has run; None before it was called."""
        return None if self.started is None else time.monotonic() - self.started


# The run that the code at hand belongs to, and the name of its worker: for log lines.
current_run: ContextVar[tuple[Run, str] | None] = ContextVar("laneway run", default=None)
