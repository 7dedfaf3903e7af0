"""Statistics of jobs over time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

from annotated_types import Interval

from laneway.domain.annotations import Doc

SHORTEST_BUCKET_S: Final = 60
LONGEST_WINDOW_S: Final = 86_400
# Numbers in the trend of a failure.
TREND: Final = 24
Seconds = Annotated[int, Interval(ge=SHORTEST_BUCKET_S, le=LONGEST_WINDOW_S)]


@dataclass(frozen=True, slots=True)
class Point:
    """Jobs of one type, or of all, in one lane within one bucket of time."""

    at: Annotated[datetime, Doc("The start of the bucket")]
    lane: str
    job_type: Annotated[str | None, Doc("null: all types, with `by_lane`")]
    started: int
    completed: int
    failed: int
    cancelled: Annotated[int, Doc("While running")]
    wait_p50_s: Annotated[float | None, Doc("Of jobs that ended with their first attempt")]
    wait_p95_s: float | None
    run_p50_s: Annotated[float | None, Doc("Of the last attempt of ended jobs")]
    run_p95_s: float | None


@dataclass(frozen=True, slots=True)
class Series:
    """A time series in buckets; empty buckets have no point."""

    window_s: int
    bucket_s: int
    is_capped: Annotated[bool, Doc("Only the newest jobs were counted: there are more")]
    points: Annotated[list[Point], Doc("Oldest first")]


@dataclass(frozen=True, slots=True)
class Failure:
    """Failed jobs with the same error type; each job has its own message."""

    lane: str
    job_type: str
    error_type: str | None
    failures: int
    last_at: datetime
    example: Annotated[UUID, Doc("The newest of these jobs")]
    # Servers of an earlier version do not send these.
    first_at: Annotated[datetime | None, Doc("The first of the counted failures")] = None
    trend: Annotated[
        tuple[int, ...],
        Doc("Failures per `bucket_s` seconds, oldest first; the last bucket ends now"),
    ] = ()


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures within the window, grouped."""

    window_s: int
    is_capped: Annotated[bool, Doc("Only the newest failed jobs were examined: there are more")]
    items: Annotated[list[Failure], Doc("The most frequent first")]
    bucket_s: Annotated[float, Doc("The seconds of one number of a `trend`; 0: unknown")] = 0.0
