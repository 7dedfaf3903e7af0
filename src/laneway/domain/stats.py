"""Statistics of jobs over time."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class Point(NamedTuple):
    """Jobs of one type (None: all) in one lane within one bucket of time, which begins `at`.

    Waits are of jobs that started for the first time and have ended, runs of jobs that ended.
    """

    at: datetime
    lane: str
    job_type: str | None
    started: int
    completed: int
    failed: int
    cancelled: int
    wait_p50_s: float | None
    wait_p95_s: float | None
    run_p50_s: float | None
    run_p95_s: float | None


class Series(NamedTuple):
    """Points, oldest first; if `is_capped`, more jobs have ended than were read."""

    points: list[Point]
    is_capped: bool


class Failure(NamedTuple):
    """Jobs of one type in one lane that failed with one type of error (None: unknown)."""

    lane: str
    job_type: str
    error_type: str | None
    failures: int
    last_at: datetime
    example: UUID

    def to_dict(self) -> dict[str, object]:
        return {
            **self._asdict(),
            "last_at": self.last_at.isoformat(),
            "example": str(self.example),
        }


class Failures(NamedTuple):
    """Failures, most frequent first; if `is_capped`, more jobs have ended than were read."""

    items: list[Failure]
    is_capped: bool
