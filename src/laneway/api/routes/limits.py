"""Routes of limits. They are shared by all lanes, so the permission must cover everything."""

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
    int | None, Field(ge=0, le=10_000, description="At once; 0: nothing starts, null: no bound")
]
RateCount = Annotated[
    int | None,
    Field(ge=1, le=1_000_000, description="How often per `rate_period_s`; null: no rate"),
]
RatePeriod = Annotated[float | None, Field(ge=0.1, le=86_400, description="Goes with `rate_count`")]
Scope = Annotated[
    Literal["cluster", "host", "process"], Field(description="What is counted together")
]


class LimitSettings(RequestBody):
    """All settings of a limit; what is not given takes a new limit's default."""

    max_concurrent: Most = 1
    rate_count: RateCount = None
    rate_period_s: RatePeriod = None
    scope: Scope = "cluster"


class LimitOut(BaseModel):
    """A limit, how often it is held now, and how many due jobs of types that need it wait."""

    name: str
    max_concurrent: Most
    rate_count: RateCount
    rate_period_s: RatePeriod
    scope: Scope
    updated_at: datetime | None
    updated_by: str | None
    running: int
    busiest: int = Field(description="Held by the site with the most")
    waiting: int
    waiting_is_capped: bool = Field(description="There are more than `waiting`")
    holders: list[str] = Field(description="Some that hold it: jobs by type, processes by host")


@router.get("", operation_id="list_limits", response_model=PageOut[LimitOut], responses=errors())
async def list_limits(who: Viewer, limit: Limit = 200, cursor: Cursor = None) -> Any:
    """Every limit with its use."""
    found = await verbs.inspect(who.database)
    items, following = by_name(found, lambda each: each.limit.name, limit, cursor)
    return {"items": [each.to_dict() for each in items], "next_cursor": following}


@router.get("/{name}", operation_id="get_limit", response_model=LimitOut, responses=errors(404))
async def get_limit(who: Viewer, name: str) -> Any:
    """One limit with its use."""
    return (await verbs.get(who.database, name)).to_dict()


@router.put(
    "/{name}",
    operation_id="put_limit",
    response_model=LimitOut,
    responses={
        **errors(409, 413),
        201: {"description": "It was not there before", "model": LimitOut},
    },
)
async def put_limit(who: Manager, name: str, settings: LimitSettings, response: Response) -> Any:
    """Makes the limit what is given, in force at every worker's next claim; creates a new one."""
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
    """Deletes a limit that nothing needs."""
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
    """Every change of the limit that is kept, newest first, also of one that is gone."""
    return await page_of(who.database, "limit", name, limit, cursor)


@router.post(
    "/{name}/rollback",
    operation_id="roll_back_limit",
    response_model=RollbackOut,
    responses=errors(404, 409, 413),
)
async def roll_back_limit(
    who: Manager, name: str, guard: Idempotent, order: RollbackRequest | None = None
) -> Response:
    """Makes the limit what it was."""
    return await roll_back(guard, "limit", name, order, who.actor)
