"""The number of jobs in each state."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict

from laneway.api.http.auth import Caller, needs
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import EXPENSIVE
from laneway.api.models.declared import settings_model
from laneway.control import jobs
from laneway.domain.codec import to_json
from laneway.domain.counts import NOT_COUNTED, StateCount
from laneway.domain.filter import JobFilter
from laneway.operations.models import output_model

router = APIRouter(tags=["jobs"])


class CountQuery(
    settings_model("CountQuery", JobFilter, JobFilter, NOT_COUNTED)  # type: ignore[misc]
):
    """A filter of the jobs to count; all given conditions must hold."""

    # All values of a query string are text.
    model_config = ConfigDict(extra="forbid", strict=False)


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
