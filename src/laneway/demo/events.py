"""The event log of a run, and the states of its jobs."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from uuid import UUID

from laneway import Job, JobHandle
from laneway.control import jobs
from laneway.domain.filter import JobFilter
from laneway.domain.states import TERMINAL, Status
from laneway.store.database import Database

KEPT = 40


class EventLog:
    """Events with the time since the start; each is also printed at once."""

    def __init__(self, show: Callable[[float, str], None]) -> None:
        self._began = time.monotonic()
        self._show = show
        self.events: deque[tuple[float, str]] = deque(maxlen=KEPT)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began

    def record(self, text: str) -> None:
        event = (self.elapsed_s, text)
        self.events.append(event)
        self._show(*event)


class JobStates:
    """The jobs of this run and their states, read page by page."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._unfinished: set[UUID] = set()
        self.submitted: list[JobHandle] = []
        self.by_lane: Counter[tuple[str, Status]] = Counter()

    def expect(self, handles: Iterable[JobHandle]) -> None:
        """Count these jobs from now on, and report them at the end."""
        for handle in handles:
            self.submitted.append(handle)
            self._unfinished.add(handle.id)

    def count(self, handles: Iterable[JobHandle]) -> None:
        """Count these jobs from now on."""
        self._unfinished.update(handle.id for handle in handles)

    @property
    def unfinished(self) -> int:
        return len(self._unfinished)

    @property
    def ended(self) -> int:
        return sum(self.by_lane.values())

    def ended_in(self, lane: str) -> int:
        return sum(count for (name, _), count in self.by_lane.items() if name == lane)

    async def refresh(self) -> None:
        """Count jobs that have ended; read no further back than the oldest unfinished job."""
        missing = set(self._unfinished)
        cursor: str | None = None
        while missing:
            page = await jobs.listing(self._db, JobFilter(), limit=200, cursor=cursor)
            for job in page.items:
                missing.discard(job.id)
                self._count(job)
            cursor = page.next_cursor
            if cursor is None:
                # Deleted, for example through the dashboard.
                self._unfinished -= missing
                break

    def _count(self, job: Job) -> None:
        if job.id in self._unfinished and job.status in TERMINAL:
            self._unfinished.discard(job.id)
            self.by_lane[job.lane, job.status] += 1
