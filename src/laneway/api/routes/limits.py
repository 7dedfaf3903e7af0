"""Limits. All lanes share them, so the permission must cover everything."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Response, status
from pydantic import BaseModel, Field

from laneway.api.http.auth import Caller
from laneway.api.http.idempotency import Idempotent
from laneway.api.http.lane_scope import everywhere
from laneway.api.http.paging import Cursor, Limit, PageOut, RequestBody, by_name
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import EXPENSIVE
from laneway.api.routes.changes import ChangePage, RollbackOut, RollbackRequest, page_of, roll_back
from laneway.control import limits as verbs

router = APIRouter(prefix="/admin/limits", tags=["limits"])

Viewer = Annotated[Caller, Depends(everywhere("workers:view"))]
Manager = Annotated[Caller, Depends(everywhere("workers:manage"))]

Most = Annotated[
    int | None, Field(ge=0, le=10_000, description="0: nothing starts, null: no bound")
]
RateCount = Annotated[
    int | None,
    Field(ge=1, le=1_000_000, description="Starts per `rate_period_s`; null: no rate"),
]
RatePeriod = Annotated[
    float | None, Field(ge=0.1, le=86_400, description="Required with `rate_count`")
]
Scope = Annotated[
    Literal["cluster", "host", "process"], Field(description="Where holders are counted together")
]


class LimitSettings(RequestBody):
    """All settings of a limit; missing ones get the default of a new limit."""

    max_concurrent: Most = 1
    rate_count: RateCount = None
    rate_period_s: RatePeriod = None
    scope: Scope = "cluster"


class LimitOut(BaseModel):
    """A limit, its current holders, and the number of due jobs that need it."""

    name: str
    max_concurrent: Most
    rate_count: RateCount
    rate_period_s: RatePeriod
    scope: Scope
    updated_at: datetime | None
    updated_by: str | None
    running: int
    busiest: int = Field(description="The holders at the host or process with the most")
    waiting: int
    waiting_is_capped: bool = Field(description="There are more than `waiting`")
    holders: list[str] = Field(description="Some of the holders: jobs by type, processes by host")


@router.get("", operation_id="list_limits", response_model=PageOut[LimitOut], responses=errors())
async def list_limits(who: Viewer, limit: Limit = 200, cursor: Cursor = None) -> Any:
    """List every limit with its use."""
    found = await verbs.inspect(who.database)
    items, following = by_name(found, lambda each: each.limit.name, limit, cursor)
    return {"items": [each.to_dict() for each in items], "next_cursor": following}


@router.get("/{name}", operation_id="get_limit", response_model=LimitOut, responses=errors(404))
async def get_limit(who: Viewer, name: str) -> Any:
    """Show one limit with its use."""
    return (await verbs.get(who.database, name)).to_dict()


@router.put(
    "/{name}",
    operation_id="put_limit",
    response_model=LimitOut,
    responses={
        **errors(409, 413),
        201: {"description": "The limit was created", "model": LimitOut},
    },
)
async def put_limit(who: Manager, name: str, settings: LimitSettings, response: Response) -> Any:
    """Create or replace a limit; workers apply it at their next claim."""
    tuned = await verbs.tune(who.database, name, settings.model_dump(), by=who.actor)
    if tuned.is_new:
        response.status_code = status.HTTP_201_CREATED
    return (await verbs.get(who.database, name)).to_dict()


@router.delete(
    "/{name}",
    operation_id="delete_limit",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=errors(404, 409),
)
async def delete_limit(who: Manager, name: str) -> None:
    """Delete a limit that no job type needs."""
    await verbs.delete(who.database, name, by=who.actor)


@router.get(
    "/{name}/history",
    operation_id="list_limit_changes",
    dependencies=EXPENSIVE,
    response_model=ChangePage,
    responses=errors(),
)
async def list_limit_changes(
    who: Viewer, name: str, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """List the kept changes of a limit, newest first; also of a deleted one."""
    return await page_of(who.database, "limit", name, limit, cursor)


@router.post(
    "/{name}/rollback",
    operation_id="roll_back_limit",
    response_model=RollbackOut,
    responses=errors(404, 409, 413),
)
async def roll_back_limit(
    who: Manager, name: str, guard: Idempotent, body: RollbackRequest | None = None
) -> Response:
    """Roll a limit back to an earlier state."""
    return await roll_back(guard, "limit", name, body, who.actor)
