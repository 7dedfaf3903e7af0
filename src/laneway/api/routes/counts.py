"""The route of how many jobs are in each state."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from laneway.api.http.auth import Caller, needs
from laneway.api.http.paging import RequestBody
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import EXPENSIVE
from laneway.api.models.jobs import Moment
from laneway.control import jobs
from laneway.domain.filter import LONGEST_AGE, JobFilter
from laneway.domain.states import Status

router = APIRouter(tags=["jobs"])


class CountQuery(RequestBody):
    """Which jobs to count; what is given must all hold."""

    # The words of a query are all text.
    model_config = ConfigDict(extra="forbid", strict=False)

    lane: str | None = Field(default=None, min_length=1, max_length=63)
    job_type: str | None = Field(default=None, min_length=1, max_length=128)
    tag: str | None = Field(default=None, min_length=1, max_length=128)
    workspace: str | None = Field(default=None, min_length=1, max_length=128)
    since: Moment | None = Field(default=None, description="Submitted then or later")
    until: Moment | None = Field(default=None, description="Submitted before")
    older_than: float | None = Field(default=None, ge=0, le=LONGEST_AGE, description="Seconds")
    newer_than: float | None = Field(default=None, ge=0, le=LONGEST_AGE, description="Seconds")


class StateCountOut(BaseModel):
    """Jobs in one state."""

    status: Status
    count: int
    is_capped: bool = Field(
        description="Not all jobs of the state were looked at: there may be more than `count`"
    )


class CountsOut(BaseModel):
    """Jobs in reach by their state, in the order of a life; every state has its line."""

    items: list[StateCountOut]


@router.get(
    "/jobs/counts",
    operation_id="count_jobs",
    dependencies=EXPENSIVE,
    response_model=CountsOut,
    responses=errors(),
)
async def count_jobs(
    who: Annotated[Caller, Depends(needs("jobs:read"))], query: Annotated[CountQuery, Query()]
) -> Any:
    """How many of the jobs in reach are in each state; of each some 10,000 are looked at."""
    wanted = JobFilter(within=who.access.reach("jobs:read"), **query.model_dump())
    return {"items": [each.to_dict() for each in await jobs.counts(who.database, wanted)]}
