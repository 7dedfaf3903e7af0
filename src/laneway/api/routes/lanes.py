"""Routes of lanes: look, create, tune, look back, roll back."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response, status

from laneway.api.http.idempotency import OnceOnly
from laneway.api.http.lane_scope import LaneCaller, over_lanes
from laneway.api.http.paging import Cursor, Limit, PageOut, by_name
from laneway.api.http.problems import answers
from laneway.api.http.read_slots import EXPENSIVE
from laneway.api.http.responses import location, render
from laneway.api.models.lanes import (
    LaneChange,
    LaneDetailOut,
    LaneOut,
    LaneStatusOut,
    NewLane,
    TakeTypeRequest,
)
from laneway.api.routes.changes import ChangeOut, RollbackOut, RollbackRequest, page_of, roll_back
from laneway.control import lanes as verbs
from laneway.store.database import Database

PREFIX = "/admin/workers/lanes"

router = APIRouter(prefix=PREFIX, tags=["lanes"])

Viewer = Annotated[LaneCaller, Depends(over_lanes("workers:view"))]
Manager = Annotated[LaneCaller, Depends(over_lanes("workers:manage"))]


@router.get(
    "", operation_id="list_lanes", response_model=PageOut[LaneStatusOut], responses=answers()
)
async def list_lanes(caller: Viewer, limit: Limit = 200, cursor: Cursor = None) -> Any:
    """The lanes in reach, each with its policy, its slots in use and what waits in it."""
    found = await verbs.inspect(caller.who.database)
    seen = (each for each in found if caller.reaches(each.lane.name))
    items, following = by_name(seen, lambda each: each.lane.name, limit, cursor)
    return {"items": [each.to_dict() for each in items], "next_cursor": following}


@router.post(
    "",
    operation_id="create_lane",
    response_model=LaneOut,
    status_code=status.HTTP_201_CREATED,
    responses=answers(409, 413),
)
async def create_lane(caller: Manager, request: Request, lane: NewLane, once: OnceOnly) -> Response:
    """A new lane; it takes job types from others, so it needs the permission on all lanes."""
    await caller.check_whole(lane.name)

    async def act(db: Database) -> Response:
        made = await verbs.create(db, lane.model_dump(), by=caller.who.actor)
        headers = {"Location": location(request, f"{PREFIX}/{made.name}")}
        return render(LaneOut, made.to_dict(), 201, headers)

    return await once.answer(act)


@router.get(
    "/{name}", operation_id="get_lane", response_model=LaneDetailOut, responses=answers(404)
)
async def get_lane(caller: Viewer, name: str) -> Any:
    """One lane with its policy, its slots in use and what waits in it by type and priority."""
    await caller.check(name)
    return (await verbs.get(caller.who.database, name)).to_dict()


@router.patch(
    "/{name}", operation_id="tune_lane", response_model=LaneOut, responses=answers(404, 409, 413)
)
async def tune_lane(caller: Manager, name: str, change: LaneChange) -> Any:
    """Changes what is given, in force at every worker's next claim; `enabled` drains and resumes.

    `job_types` moves types between lanes, so it needs the permission on all lanes.
    """
    await caller.check(name)
    if "job_types" in change.model_fields_set:
        await caller.check_whole(name)
    tuned = await verbs.tune(
        caller.who.database, name, change.model_dump(exclude_unset=True), by=caller.who.actor
    )
    return tuned.to_dict()


@router.post(
    "/{name}/take",
    operation_id="take_type",
    response_model=LaneOut,
    responses=answers(404, 409, 413),
)
async def take_type(caller: Manager, name: str, once: OnceOnly, order: TakeTypeRequest) -> Response:
    """Moves a job type, with its waiting jobs, into the lane; so it needs all lanes."""
    await caller.check(name)
    await caller.check_whole(name)

    async def act(db: Database) -> Response:
        lane = await verbs.move_type(db, order.job_type, name, by=caller.who.actor)
        return render(LaneOut, lane.to_dict())

    return await once.answer(act)


@router.get(
    "/{name}/history",
    operation_id="list_lane_changes",
    dependencies=EXPENSIVE,
    response_model=PageOut[ChangeOut],
    responses=answers(404),
)
async def list_lane_changes(
    caller: Manager, name: str, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """Every change of the lane that is kept, newest first."""
    await caller.check(name)
    return await page_of(caller.who.database, "lane", name, limit, cursor)


@router.post(
    "/{name}/rollback",
    operation_id="roll_back_lane",
    response_model=RollbackOut,
    responses=answers(404, 409, 413),
)
async def roll_back_lane(
    caller: Manager, name: str, once: OnceOnly, order: RollbackRequest | None = None
) -> Response:
    """Makes the lane what it was; that may move job types, so it needs all lanes."""
    await caller.check(name)
    await caller.check_whole(name)
    return await roll_back(once, "lane", name, order, caller.who.actor)
