"""The route of charts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from laneway.api.lane_models import JobType, LaneName
from laneway.api.problems import answers
from laneway.api.reach import LaneCaller, over_lanes
from laneway.control import stats

router = APIRouter(tags=["workers"])

Viewer = Annotated[LaneCaller, Depends(over_lanes("workers:view"))]


class PointOut(BaseModel):
    """Jobs of one type in one lane within one bucket of time."""

    at: datetime = Field(description="When the bucket begins")
    lane: str
    job_type: str
    started: int
    completed: int
    failed: int
    cancelled: int = Field(description="While they ran")
    wait_p50_s: float | None = Field(description="Of jobs whose first attempt has ended the job")
    wait_p95_s: float | None


class SeriesOut(BaseModel):
    """What happened, bucket by bucket; a bucket in which nothing happened has no point."""

    window_s: int
    bucket_s: int
    is_capped: bool = Field(description="More has happened than was looked at: the newest is told")
    points: list[PointOut] = Field(description="Oldest first")


@router.get(
    "/admin/stats", operation_id="read_stats", response_model=SeriesOut, responses=answers(404)
)
async def read_stats(
    caller: Viewer,
    window_s: Annotated[int, Query(ge=60, le=stats.LONGEST_WINDOW_S)] = 3600,
    bucket_s: Annotated[int, Query(ge=60, le=stats.LONGEST_WINDOW_S)] = 60,
    lane: LaneName | None = None,
    job_type: JobType | None = None,
) -> Any:
    """Starts, ends and waits over time, of the lanes in reach."""
    lanes = caller.lanes
    if lane is not None:
        await caller.check(lane)
        lanes = frozenset({lane})
    found = await stats.series(
        caller.who.database,
        window_s=window_s,
        bucket_s=bucket_s,
        lanes=lanes,
        job_type=job_type,
    )
    return {
        "window_s": window_s,
        "bucket_s": bucket_s,
        "is_capped": found.is_capped,
        "points": [each._asdict() for each in found.points],
    }
