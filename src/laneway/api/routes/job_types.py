"""Job types that workers have published, and the applications that publish them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from laneway.api.http.auth import Caller
from laneway.api.http.lane_scope import LaneCaller, everywhere, over_lanes
from laneway.api.http.paging import Cursor, Limit, PageOut
from laneway.api.http.problems import errors
from laneway.control import job_types
from laneway.domain.lane import LaneName

router = APIRouter(tags=["workers"])

Viewer = Annotated[LaneCaller, Depends(over_lanes("workers:view"))]
ViewerOfAll = Annotated[Caller, Depends(everywhere("workers:view"))]
Manager = Annotated[Caller, Depends(everywhere("workers:manage"))]
OfType = Annotated[str | None, Query(max_length=128, description="Only of this job type")]


class PublishedTypeOut(BaseModel):
    """A job type as published by the newest worker that has it."""

    name: str
    lane: str = Field(description="Its current lane")
    arguments: dict[str, Any] | None = Field(
        description="JSON Schema of the payload; null: any payload is accepted"
    )
    priority: int = Field(description="The default of its jobs")
    max_retries: int = Field(description="The default of its jobs")
    timeout_s: float | None
    isolation: Literal["async", "thread", "process"]
    stale: Literal["heartbeat", "progress"]
    limits: list[str] = Field(description="Held for the whole run")
    has_analysis: bool
    approval: Literal["never", "always", "below"]
    approval_below: float | None = Field(description="Up to this cost, no approval is needed")
    approval_unit: str | None
    two_person: bool = Field(description="The submitter may not approve")
    approval_expires_s: float
    max_age_s: float | None
    published_at: datetime
    is_known: bool = Field(description="false: no live worker can run it")


@router.get(
    "/admin/workers/types",
    operation_id="list_job_types",
    response_model=PageOut[PublishedTypeOut],
    responses=errors(404),
)
async def list_job_types(
    caller: Viewer, limit: Limit = 50, cursor: Cursor = None, lane: LaneName | None = None
) -> Any:
    """List the published job types of the lanes in reach, by name."""
    lanes = caller.lanes
    if lane is not None:
        await caller.check(lane)
        lanes = frozenset({lane})
    found = await job_types.listing(caller.who.database, lanes=lanes, limit=limit, cursor=cursor)
    return {"items": [each.to_dict() for each in found.items], "next_cursor": found.next_cursor}


class PublisherOut(BaseModel):
    """An application that publishes a job type. The strictest of their policies applies."""

    job_type: str
    application: str = Field(description="`LANEWAY_APPLICATION`, or the module of its handler")
    first_at: datetime
    published_at: datetime = Field(description="When its policy last changed")
    seen_at: datetime = Field(description="When one of its workers last had the type")
    is_stale: bool = Field(
        description="Not seen for 45 days while another has it: only its approval policy applies"
    )


class ForgottenOut(BaseModel):
    """The job types that an application no longer publishes."""

    application: str
    job_types: list[str]


@router.get(
    "/admin/workers/publishers",
    operation_id="list_publishers",
    response_model=PageOut[PublisherOut],
    responses=errors(),
)
async def list_publishers(
    who: ViewerOfAll,
    limit: Limit = 50,
    cursor: Cursor = None,
    job_type: OfType = None,
    stale_only: Annotated[bool, Query(description="Only those with `is_stale`")] = False,
) -> Any:
    """List applications and the job types they publish, by job type."""
    found = await job_types.publishers(
        who.database, job_type=job_type, stale_only=stale_only, limit=limit, cursor=cursor
    )
    return {"items": [each.to_dict() for each in found.items], "next_cursor": found.next_cursor}


@router.delete(
    "/admin/workers/publishers/{application:path}",
    operation_id="forget_publisher",
    response_model=ForgottenOut,
    responses=errors(404),
)
async def forget_publisher(who: Manager, application: str, job_type: OfType = None) -> Any:
    """Forget the policy of a removed application, for one job type or for all.

    The policies of other applications apply when their workers next start.
    """
    forgotten = await job_types.forget_publisher(
        who.database, application, job_type=job_type, by=who.actor
    )
    return {"application": application, "job_types": forgotten}
