"""What happened, in plain words, and what every job has come to."""

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
    """Events with the time since the start; each is passed on as it happens."""

    def __init__(self, pass_on: Callable[[float, str], None]) -> None:
        self._began = time.monotonic()
        self._pass_on = pass_on
        self.events: deque[tuple[float, str]] = deque(maxlen=KEPT)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began

    def tell(self, text: str) -> None:
        event = (self.elapsed_s, text)
        self.events.append(event)
        self._pass_on(*event)


class JobStates:
    """Our jobs and their states, read a page at a time."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._waited_for: set[UUID] = set()
        self.submitted: list[JobHandle] = []
        self.by_lane: Counter[tuple[str, Status]] = Counter()

    def expect(self, handles: Iterable[JobHandle]) -> None:
        """Counts these jobs from now on."""
        for handle in handles:
            self.submitted.append(handle)
            self._waited_for.add(handle.id)

    @property
    def unfinished(self) -> int:
        return len(self._waited_for)

    @property
    def ended(self) -> int:
        return sum(self.by_lane.values())

    def ended_in(self, lane: str) -> int:
        return sum(count for (name, _), count in self.by_lane.items() if name == lane)

    async def refresh(self) -> None:
        """Notes which jobs have ended; goes back only as far as one is still waited for."""
        missing = set(self._waited_for)
        cursor: str | None = None
        while missing:
            page = await jobs.listing(self._db, JobFilter(), limit=200, cursor=cursor)
            for job in page.items:
                missing.discard(job.id)
                self._note(job)
            cursor = page.next_cursor
            if cursor is None:
                break

    def _note(self, job: Job) -> None:
        if job.id in self._waited_for and job.status in TERMINAL:
            self._waited_for.discard(job.id)
            self.by_lane[job.lane, job.status] += 1
