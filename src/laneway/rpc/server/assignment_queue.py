"""What was claimed for a stream and is not sent yet."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from laneway.domain.approval import ANALYSIS_PREFIX, analysis_of
from laneway.domain.claim import Claim
from laneway.rpc.server.assignments import Assigned
from laneway.store.leases import Assignment
from laneway.store.remote import FinishedStep

# Of one message; an assignment larger than that goes alone.
SOFT_BYTES: Final = 1 << 20
# With more than that in it, nothing more is claimed until its reader has taken some.
MOST_BYTES: Final = 4 << 20
# An assignment without its texts.
_FRAME_BYTES: Final = 256
# What is left of a lease must be worth sending: below this part of it, the job is given back.
LEAST_LEFT: Final = 0.25
# A reader that takes nothing for so long gets nothing more.
STUCK_S: Final = 1.0


class OutAssignment(NamedTuple):
    """An assignment as it is sent; payload and checkpoint are JSON text."""

    id: str
    claim: Claim
    # Without the mark of analyses.
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

    @property
    def queued_as(self) -> str:
        """Its job type with the mark of analyses."""
        return analysis_of(self.job_type) if self.is_analysis else self.job_type


class Beat(NamedTuple):
    """The worker is to send a Heartbeat now."""


class QueuedAssignment(NamedTuple):
    """A claimed job on its way, and when its lease began."""

    assigned: Assigned
    assignment: Assignment
    lease_s: float
    begun: float
    timeout_ms: int
    # Bytes of it in a message, about, without steps.
    size: int

    @property
    def stale_at(self) -> float:
        """From then on too little of its lease is left."""
        return self.begun + self.lease_s * (1 - LEAST_LEFT)

    def is_stale(self, now: float) -> bool:
        return now > self.stale_at

    def made(self, steps: Iterable[FinishedStep], now: float) -> OutAssignment:
        one = self.assignment
        is_analysis = one.job_type.startswith(ANALYSIS_PREFIX)
        return OutAssignment(
            self.assigned.id,
            one.claim,
            one.job_type.removeprefix(ANALYSIS_PREFIX),
            one.payload,
            one.checkpoint,
            tuple(steps),
            int(self.lease_s * 1000),
            int((self.begun + self.lease_s - now) * 1000),
            self.timeout_ms,
            one.traceparent,
            self.assigned.leased_in,
            one.retries,
            is_analysis,
        )


class AssignmentQueue:
    """In the order of the claims; emptied by whoever writes to the stream."""

    def __init__(self) -> None:
        self._parcels: deque[QueuedAssignment] = deque()
        self._news = asyncio.Event()
        self._has_beat = False
        self._since: float | None = None
        self._bytes = 0
        # When something was last taken.
        self._was_full = False
        self.is_closed = False

    def put(self, parcels: Iterable[QueuedAssignment]) -> None:
        for one in parcels:
            self._parcels.append(one)
            self._bytes += one.size
        if self._parcels:
            if self._since is None:
                self._since = time.monotonic()
            self._news.set()

    def put_back(self, parcels: Iterable[QueuedAssignment]) -> None:
        """They could not be sent yet, and stay the first."""
        for one in reversed(list(parcels)):
            self._parcels.appendleft(one)
            self._bytes += one.size
        self._news.set()

    def beat(self) -> None:
        self._has_beat = True
        self._news.set()

    def close(self) -> None:
        """Nothing more is put in; what is in it is still taken."""
        self.is_closed = True
        self._news.set()

    @property
    def is_stuck(self) -> bool:
        """Whether nobody takes anything out."""
        return self._since is not None and time.monotonic() - self._since > STUCK_S

    @property
    def is_full(self) -> bool:
        """Whether there is enough in it for now."""
        return self._bytes > MOST_BYTES

    def sent(self) -> bool:
        """What was taken is on its way; answers whether it was stuck or full until now."""
        was_away = self.is_stuck or (self._was_full and not self.is_full)
        self._since = time.monotonic() if self._parcels else None
        return was_away

    async def wait(self) -> bool:
        """Returns once there is something to take; False: there never will be."""
        while not (self._parcels or self._has_beat):
            if self.is_closed:
                return False
            self._news.clear()
            await self._news.wait()
        return True

    def take_beat(self) -> bool:
        had, self._has_beat = self._has_beat, False
        return had

    def take(self) -> list[QueuedAssignment]:
        """As many as go into one message."""
        self._since = time.monotonic()
        self._was_full = self.is_full
        taken: list[QueuedAssignment] = []
        size = 0
        while self._parcels:
            size += self._parcels[0].size
            if taken and size > SOFT_BYTES:
                break
            taken.append(self._parcels.popleft())
            self._bytes -= taken[-1].size
        return taken

    def take_stale(self) -> list[QueuedAssignment]:
        """Those whose lease may be over before anybody has them."""
        now = time.monotonic()
        stale = [one for one in self._parcels if one.is_stale(now)]
        if stale:
            self._parcels = deque(one for one in self._parcels if not one.is_stale(now))
            self._bytes = sum(one.size for one in self._parcels)
        return stale

    def take_all(self) -> list[QueuedAssignment]:
        taken = list(self._parcels)
        self._parcels.clear()
        self._bytes = 0
        return taken

    def __len__(self) -> int:
        return len(self._parcels)


def size_of(one: Assignment) -> int:
    """Bytes of it in a message, about, without steps."""
    size = _FRAME_BYTES + _bytes_of(one.payload)
    return size if one.checkpoint is None else size + _bytes_of(one.checkpoint)


def split(batch: Iterable[tuple[OutAssignment, int]]) -> Iterator[list[OutAssignment]]:
    """Assignments, each with its size, in messages of a handy size, whatever steps have added."""
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
