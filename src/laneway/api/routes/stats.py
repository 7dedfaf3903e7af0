"""Time series and failures for charts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from laneway.api.http.lane_scope import LaneCaller, over_lanes
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import EXPENSIVE
from laneway.control import stats
from laneway.domain.lane import JobType, LaneName
from laneway.domain.verb_rules import LONGEST_PAGE

router = APIRouter(tags=["workers"])

Viewer = Annotated[LaneCaller, Depends(over_lanes("workers:view"))]


class PointOut(BaseModel):
    """Jobs of one type, or of all, in one lane within one bucket of time."""

    at: datetime = Field(description="The start of the bucket")
    lane: str
    job_type: str | None = Field(description="null: all types, with `by_lane`")
    started: int
    completed: int
    failed: int
    cancelled: int = Field(description="While running")
    wait_p50_s: float | None = Field(description="Of jobs that ended with their first attempt")
    wait_p95_s: float | None
    run_p50_s: float | None = Field(description="Of the last attempt of ended jobs")
    run_p95_s: float | None


class SeriesOut(BaseModel):
    """A time series in buckets; empty buckets have no point."""

    window_s: int
    bucket_s: int
    is_capped: bool = Field(description="Only the newest jobs were counted: there are more")
    points: list[PointOut] = Field(description="Oldest first")


class FailureGroupOut(BaseModel):
    """Failed jobs with the same error type; each job has its own message."""

    lane: str
    job_type: str
    error_type: str | None
    failures: int
    last_at: datetime
    example: UUID = Field(description="The newest of these jobs")


class FailuresOut(BaseModel):
    """The failures within the window, grouped."""

    window_s: int
    is_capped: bool = Field(description="Only the newest ended jobs were examined: there are more")
    items: list[FailureGroupOut] = Field(description="The most frequent first")


@router.get(
    "/admin/stats",
    operation_id="read_stats",
    dependencies=EXPENSIVE,
    response_model=SeriesOut,
    responses=errors(404),
)
async def read_stats(
    caller: Viewer,
    window_s: Annotated[int, Query(ge=60, le=stats.LONGEST_WINDOW_S)] = 3600,
    bucket_s: Annotated[int, Query(ge=60, le=stats.LONGEST_WINDOW_S)] = 60,
    lane: LaneName | None = None,
    job_type: JobType | None = None,
    by_lane: Annotated[bool, Query(description="One point for all job types of a lane")] = False,
) -> Any:
    """Read starts, ends, waits and run times over time, of the lanes in reach.

    Buckets start at multiples of their length; a bucket as long as the window ends now.
    """
    lanes = await _lanes(caller, lane)
    found = await stats.series(
        caller.who.database,
        window_s=window_s,
        bucket_s=bucket_s,
        lanes=lanes,
        job_type=job_type,
        by_lane=by_lane,
    )
    return {
        "window_s": window_s,
        "bucket_s": bucket_s,
        "is_capped": found.is_capped,
        "points": [each._asdict() for each in found.points],
    }


@router.get(
    "/admin/stats/failures",
    operation_id="read_failures",
    dependencies=EXPENSIVE,
    response_model=FailuresOut,
    responses=errors(404),
)
async def read_failures(
    caller: Viewer,
    window_s: Annotated[int, Query(ge=60, le=stats.LONGEST_WINDOW_S)] = 3600,
    lane: LaneName | None = None,
    job_type: JobType | None = None,
    top: Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="Maximum number")] = 20,
) -> Any:
    """Group the failures of jobs in the lanes in reach by job type and error type."""
    found = await stats.failures(
        caller.who.database,
        window_s=window_s,
        lanes=await _lanes(caller, lane),
        job_type=job_type,
        limit=top,
    )
    return {
        "window_s": window_s,
        "is_capped": found.is_capped,
        "items": [each._asdict() for each in found.items],
    }


async def _lanes(caller: LaneCaller, lane: str | None) -> frozenset[str] | None:
    """The requested lane, if it is in reach; all lanes in reach if none is requested."""
    if lane is None:
        return caller.lanes
    await caller.check(lane)
    return frozenset({lane})
