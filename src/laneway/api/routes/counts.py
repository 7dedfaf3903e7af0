"""The number of jobs in each state."""

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
from laneway.domain.codec import to_json
from laneway.domain.counts import StateCount
from laneway.domain.filter import LONGEST_AGE, JobFilter
from laneway.operations.models import output_model

router = APIRouter(tags=["jobs"])


class CountQuery(RequestBody):
    """A filter of the jobs to count; all given conditions must hold."""

    # All values of a query string are text.
    model_config = ConfigDict(extra="forbid", strict=False)

    lane: str | None = Field(default=None, min_length=1, max_length=63)
    job_type: str | None = Field(default=None, min_length=1, max_length=128)
    tag: str | None = Field(default=None, min_length=1, max_length=128)
    workspace: str | None = Field(default=None, min_length=1, max_length=128)
    since: Moment | None = Field(default=None, description="Submitted at this time or later")
    until: Moment | None = Field(default=None, description="Submitted before this time")
    older_than: float | None = Field(default=None, ge=0, le=LONGEST_AGE, description="Seconds")
    newer_than: float | None = Field(default=None, ge=0, le=LONGEST_AGE, description="Seconds")


class CountsOut(BaseModel):
    """The number of jobs in reach by state, for every state, in life-cycle order."""

    items: list[output_model(StateCount)]  # type: ignore[valid-type]


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
    """Count the jobs in reach by state; about 10,000 of each state are examined."""
    wanted = JobFilter(within=who.access.reach("jobs:read"), **query.model_dump())
    return {"items": to_json(await jobs.counts(who.database, wanted))}
