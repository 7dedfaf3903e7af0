"""What happened to jobs over time, as a statement."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from laneway.store.statement import Row, Statement


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


def count_ends(
    *,
    window_s: float,
    bucket_s: float,
    lanes: Collection[str] | None,
    job_type: str | None,
    bound: int,
    points: int,
) -> Statement[Series]:
    """Starts and ends within the window, from the newest `bound` outcomes."""

    def decode(rows: list[Row]) -> Series:
        found = [Point(*row[:-1]) for row in reversed(rows)]
        return Series(found, len(rows) == points or any(row[-1] for row in rows))

    return Statement(
        "stats/count_ends",
        decode,
        {
            "window_s": float(window_s),
            "bucket_s": float(bucket_s),
            "lanes": None if lanes is None else sorted(lanes),
            "job_type": job_type,
            "bound": bound,
            "points": points,
        },
    )
