"""What happened to jobs over time."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Point(NamedTuple):
    """Jobs of one type in one lane within one bucket of time, which begins `at`.

    The waits are of jobs that started for the first time and have ended since; None: there is none.
    """

    at: datetime
    lane: str
    job_type: str
    started: int
    completed: int
    failed: int
    cancelled: int
    wait_p50_s: float | None
    wait_p95_s: float | None


class Series(NamedTuple):
    """Points oldest first; when `is_capped`, more jobs have ended than were looked at."""

    points: list[Point]
    is_capped: bool
