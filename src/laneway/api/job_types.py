"""The route of what workers have published of their job types."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from laneway.api.lane_models import LaneName
from laneway.api.paging import Cursor, Limit, Page
from laneway.api.problems import answers
from laneway.api.reach import LaneCaller, over_lanes
from laneway.control import job_types

router = APIRouter(tags=["workers"])

Viewer = Annotated[LaneCaller, Depends(over_lanes("workers:view"))]


class PublishedTypeOut(BaseModel):
    """A job type as the newest worker that knows it has published it."""

    name: str
    lane: str = Field(description="The one in force")
    arguments: dict[str, Any] | None = Field(
        description="JSON Schema of the payload; null: any payload is taken"
    )
    priority: int = Field(description="Of jobs that say none")
    max_retries: int = Field(description="Of jobs that say none")
    timeout_s: float | None
    isolation: Literal["async", "thread", "process"]
    stale: Literal["heartbeat", "progress"]
    limits: list[str] = Field(description="Held for the whole run")
    has_analysis: bool
    approval: Literal["never", "always", "below"]
    approval_below: float | None = Field(description="No more than this needs no decision")
    approval_unit: str | None
    two_person: bool = Field(description="The submitter may not approve")
    approval_expires_s: float
    max_age_s: float | None
    published_at: datetime
    is_known: bool = Field(description="false: no worker that lives can run it")


@router.get(
    "/admin/workers/types",
    operation_id="list_job_types",
    response_model=Page[PublishedTypeOut],
    responses=answers(404),
)
async def list_job_types(
    caller: Viewer, limit: Limit = 50, cursor: Cursor = None, lane: LaneName | None = None
) -> Any:
    """The published job types of the lanes in reach, by name."""
    lanes = caller.lanes
    if lane is not None:
        await caller.check(lane)
        lanes = frozenset({lane})
    found = await job_types.listing(caller.who.database, lanes=lanes, limit=limit, cursor=cursor)
    return {"items": [each.to_dict() for each in found.items], "next_cursor": found.next_cursor}
