"""Assignments that were claimed for a stream and are not sent yet."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from laneway.domain.approval import analysed_type, analysis_of, is_analysis
from laneway.domain.claim import Claim
from laneway.engine.run.attempt_outcomes import own_error_json
from laneway.rpc.server.assignments import Assigned
from laneway.store.leases import Assignment, Verdict
from laneway.store.remote import FinishedStep

# The size of one message; a larger assignment is sent alone.
SOFT_BYTES: Final = 1 << 20
# With more bytes in the queue, nothing is claimed until its reader has taken some.
MAX_BYTES: Final = 4 << 20
# The size of an assignment without its texts.
_FRAME_BYTES: Final = 256
# A job is released instead of sent once less than this fraction of its lease is left.
LEAST_LEFT: Final = 0.25
# After this long without a read a stream counts as stuck, and nothing more is claimed for it.
STUCK_S: Final = 1.0


class OutAssignment(NamedTuple):
    """An assignment to send; payload and checkpoint are JSON text."""

    id: str
    claim: Claim
    # Without the prefix of analyses.
    job_type: str
    payload: str
    checkpoint: str | None
    steps: tuple[FinishedStep, ...]
    lease_ms: int
    lease_left_ms: int
    timeout_ms: int
    traceparent: str | None
    lane: str
    retries: int
    is_analysis: bool
    max_retries: int
    tags: tuple[str, ...]
    created_by: str | None
    is_ahead: bool = False

    @property
    def queued_as(self) -> str:
        """The job type with the prefix of analyses."""
        return analysis_of(self.job_type) if self.is_analysis else self.job_type


class Beat(NamedTuple):
    """Asks the worker to send a Heartbeat now, and says whether its token expires soon."""

    token_expires_in_ms: int | None = None


class QueuedAssignment(NamedTuple):
    """A claimed job that waits to be sent, and the start of its lease."""

    assigned: Assigned
    assignment: Assignment
    lease_s: float
    begun: float
    timeout_ms: int
    # Approximate bytes in a message, without steps.
    size: int
    # Claimed ahead of the worker's room.
    is_ahead: bool = False

    @property
    def stale_at(self) -> float:
        """The time from which too little of its lease is left."""
        return self.begun + self.lease_s * (1 - LEAST_LEFT)

    def is_stale(self, now: float) -> bool:
        return now > self.stale_at

    def to_send(self, steps: Iterable[FinishedStep], now: float) -> OutAssignment:
        one = self.assignment
        return OutAssignment(
            self.assigned.id,
            one.claim,
            analysed_type(one.job_type),
            one.payload,
            one.checkpoint,
            tuple(steps),
            int(self.lease_s * 1000),
            int((self.begun + self.lease_s - now) * 1000),
            self.timeout_ms,
            one.traceparent,
            self.assigned.leased_in,
            one.retries,
            is_analysis(one.job_type),
            one.max_retries,
            one.tags,
            one.created_by,
            self.is_ahead,
        )


class AssignmentQueue:
    """A queue in the order of the claims; the stream's writer takes from it."""

    def __init__(self) -> None:
        self._queued: deque[QueuedAssignment] = deque()
        self._changed = asyncio.Event()
        self._has_beat = False
        # When the writer last took something, or the queue became non-empty.
        self._since: float | None = None
        self._bytes = 0
        # Whether the queue was full when something was last taken.
        self._was_full = False
        self.is_closed = False

    def put(self, queued: Iterable[QueuedAssignment]) -> None:
        for one in queued:
            self._queued.append(one)
            self._bytes += one.size
        if self._queued:
            if self._since is None:
                self._since = time.monotonic()
            self._changed.set()

    def put_back(self, queued: Iterable[QueuedAssignment]) -> None:
        """Returns assignments that could not be sent yet to the front."""
        for one in reversed(list(queued)):
            self._queued.appendleft(one)
            self._bytes += one.size
        self._changed.set()

    def beat(self) -> None:
        self._has_beat = True
        self._changed.set()

    def close(self) -> None:
        """Ends `wait` once the queue is empty."""
        self.is_closed = True
        self._changed.set()

    @property
    def is_stuck(self) -> bool:
        """Whether the writer takes nothing."""
        return self._since is not None and time.monotonic() - self._since > STUCK_S

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be claimed for now."""
        return self._bytes > MAX_BYTES

    def sent(self) -> bool:
        """Notes that a message was sent; returns whether the queue was stuck or full until now."""
        was_blocked = self.is_stuck or (self._was_full and not self.is_full)
        self._since = time.monotonic() if self._queued else None
        return was_blocked

    async def wait(self) -> bool:
        """Returns True once there is something to take, False once the queue is closed."""
        while not (self._queued or self._has_beat):
            if self.is_closed:
                return False
            self._changed.clear()
            await self._changed.wait()
        return True

    def take_beat(self) -> bool:
        had, self._has_beat = self._has_beat, False
        return had

    def take(self) -> list[QueuedAssignment]:
        """Takes as many assignments as fit into one message."""
        self._since = time.monotonic()
        self._was_full = self.is_full
        taken: list[QueuedAssignment] = []
        size = 0
        while self._queued:
            size += self._queued[0].size
            if taken and size > SOFT_BYTES:
                break
            taken.append(self._queued.popleft())
            self._bytes -= taken[-1].size
        return taken

    def take_stale(self) -> list[QueuedAssignment]:
        """Takes assignments whose lease may lapse before their worker has them."""
        now = time.monotonic()
        stale = [one for one in self._queued if one.is_stale(now)]
        if stale:
            self._queued = deque(one for one in self._queued if not one.is_stale(now))
            self._bytes = sum(one.size for one in self._queued)
        return stale

    def take_all(self) -> list[QueuedAssignment]:
        taken = list(self._queued)
        self._queued.clear()
        self._bytes = 0
        return taken

    def __len__(self) -> int:
        return len(self._queued)


def size_of(one: Assignment) -> int:
    """The approximate bytes of an assignment in a message, without steps."""
    size = _FRAME_BYTES + _bytes_of(one.payload)
    return size if one.checkpoint is None else size + _bytes_of(one.checkpoint)


def of_too_large(claim: Claim, size: int, most: int) -> Verdict:
    """The verdict on an attempt that no message can carry."""
    message = (
        f"payload, checkpoint and steps take {size:,} bytes, but a message to a remote worker"
        f" takes at most {most:,}"
    )
    return Verdict(claim, "giveup", error=own_error_json("AssignmentTooLarge", message), ran_s=0.0)


def split(batch: Iterable[tuple[OutAssignment, int]]) -> Iterator[list[OutAssignment]]:
    """Splits sized assignments into messages, whose size now includes their steps."""
    part: list[OutAssignment] = []
    total = 0
    for one, size in batch:
        total += size
        if part and total > SOFT_BYTES:
            yield part
            part, total = [], size
        part.append(one)
    if part:
        yield part


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
