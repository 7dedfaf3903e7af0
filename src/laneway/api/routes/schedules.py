"""Schedules. Each belongs to a workspace, and to the lane of its job type."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response, status

from laneway.api.http.auth import Caller, action_of, needs
from laneway.api.http.bodies import JobBodyRoute
from laneway.api.http.idempotency import Idempotent
from laneway.api.http.job_access import quota_of, within_quota
from laneway.api.http.lane_scope import everywhere
from laneway.api.http.paging import Cursor, Limit, PageOut, by_name
from laneway.api.http.portions import RowBatch, page
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import EXPENSIVE
from laneway.api.http.responses import Json, location, render
from laneway.api.models.schedules import (
    NewSchedule,
    RunOut,
    RunRequest,
    ScheduleChange,
    ScheduleOut,
    SlotOut,
)
from laneway.api.routes.changes import ChangePage, RollbackOut, RollbackRequest, page_of, roll_back
from laneway.control import schedules as verbs
from laneway.domain.bounds import Bounds, check_priority_bound
from laneway.domain.schedule import Schedule
from laneway.errors import InvalidInput, NotFound
from laneway.store import lanes
from laneway.store.database import Database

PREFIX = "/admin/schedules"
VIEW = "schedules:view"
MANAGE = "schedules:manage"

router = APIRouter(prefix=PREFIX, tags=["schedules"], route_class=JobBodyRoute)

Viewer = Annotated[Caller, Depends(needs(VIEW))]
Manager = Annotated[Caller, Depends(needs(MANAGE))]
AllViewer = Annotated[Caller, Depends(everywhere(VIEW))]
AllManager = Annotated[Caller, Depends(everywhere(MANAGE))]


@router.get(
    "",
    operation_id="list_schedules",
    dependencies=EXPENSIVE,
    response_model=PageOut[ScheduleOut],
    responses=errors(),
)
async def list_schedules(who: Viewer, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List the schedules in reach, by name; a page is shorter if they are large."""
    state = await who.database.run(lanes.read())
    reach = who.access.reach(VIEW)
    seen = [
        each.name
        for each in await verbs.places(who.database)
        if reach.covers(owner=None, workspace=each.workspace, lane=state.lane_of(each.job_type))
    ]

    async def read(count: int, after: str | None) -> RowBatch:
        names, following = by_name(seen, str, count, after)
        found = await verbs.read(who.database, names) if names else []
        return RowBatch([each.to_dict() for each in found], following)

    return await page(read, limit, cursor)


@router.post(
    "",
    operation_id="create_schedule",
    response_model=ScheduleOut,
    status_code=status.HTTP_201_CREATED,
    responses=errors(409, 413),
)
async def create_schedule(
    who: Manager, request: Request, new: NewSchedule, guard: Idempotent
) -> Response:
    """Create a schedule; its first slot is in the future."""
    await _check_place(who, request, new.name, new.workspace, new.job_type, new.priority)

    async def apply(db: Database) -> Response:
        given = new.settings()
        made = await verbs.put(db, new.name, given, by=who.actor, is_new=True, as_text=True)
        headers = {"Location": location(request, f"{PREFIX}/{made.name}")}
        return Json(made.to_dict(), 201, headers)

    return await guard.run(apply)


@router.get(
    "/{name}", operation_id="get_schedule", response_model=ScheduleOut, responses=errors(404)
)
async def get_schedule(who: Viewer, request: Request, name: str) -> Response:
    """Show one schedule with its state."""
    return Json((await _found(who, request, name, VIEW)).to_dict())


@router.patch(
    "/{name}",
    operation_id="change_schedule",
    response_model=ScheduleOut,
    responses=errors(404, 409, 413),
)
async def change_schedule(
    who: Manager, request: Request, name: str, change: ScheduleChange
) -> Response:
    """Change the given fields; slots count from now on. `enabled` stops and resumes it."""
    found = await _found(who, request, name, MANAGE)
    given = change.settings()
    # Stopping a schedule sets no priority, so there is nothing to check.
    if given != {"enabled": False}:
        place = (given.get("workspace", found.workspace), given.get("job_type", found.job_type))
        await _check_place(who, request, name, *place, given.get("priority", found.priority))
    changed = await verbs.put(who.database, name, given, by=who.actor, as_text=True)
    return Json(changed.to_dict())


@router.delete(
    "/{name}",
    operation_id="delete_schedule",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=errors(404),
)
async def delete_schedule(who: Manager, request: Request, name: str) -> None:
    """Delete a schedule and its slots; the jobs it submitted stay."""
    await _found(who, request, name, MANAGE)
    await verbs.delete(who.database, name, by=who.actor)


@router.post(
    "/{name}/run",
    operation_id="run_schedule",
    response_model=RunOut,
    responses=errors(404, 409, 413),
)
async def run_schedule(
    who: Manager, request: Request, name: str, guard: Idempotent, body: RunRequest | None = None
) -> Response:
    """Run the schedule once, now."""
    found = await _found(who, request, name, MANAGE)
    place = (found.workspace, found.job_type)
    quota = quota_of(who, await _check_place(who, request, name, *place, found.priority))
    check = body is not None and body.check

    async def apply(db: Database) -> Response:
        ran = await verbs.run_now(db, name, by=who.actor, check=check, quota=quota)
        return render(RunOut, ran._asdict())

    return await within_quota(request, quota, lambda: guard.run(apply))


@router.get(
    "/{name}/slots",
    operation_id="list_slots",
    response_model=PageOut[SlotOut],
    responses=errors(404),
)
async def list_slots(
    who: Viewer, request: Request, name: str, limit: Limit = 50, cursor: Cursor = None
) -> Any:
    """List the slots of a schedule with their outcome, newest first."""
    await _found(who, request, name, VIEW)
    found = await verbs.slots(who.database, name, limit=limit, before=_time_of(cursor))
    following = found[-1].slot.isoformat() if len(found) == limit else None
    return {"items": [each.to_dict() for each in found], "next_cursor": following}


@router.get(
    "/{name}/history",
    operation_id="list_schedule_changes",
    dependencies=EXPENSIVE,
    response_model=ChangePage,
    responses=errors(),
)
async def list_schedule_changes(
    who: AllViewer, name: str, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """List the kept changes of a schedule, newest first; also of a deleted one.

    It may have belonged to another workspace, so this needs the permission everywhere.
    """
    return await page_of(who.database, "schedule", name, limit, cursor)


@router.post(
    "/{name}/rollback",
    operation_id="roll_back_schedule",
    response_model=RollbackOut,
    responses=errors(404, 409, 413),
)
async def roll_back_schedule(
    who: AllManager,
    request: Request,
    name: str,
    guard: Idempotent,
    body: RollbackRequest | None = None,
) -> Response:
    """Roll a schedule back to an earlier state, which may belong to another workspace."""

    async def check(db: Database) -> None:
        try:
            found = await verbs.get(db, name, as_text=True)
        except NotFound:
            return
        await _check_place(who, request, name, found.workspace, found.job_type, found.priority)

    return await roll_back(guard, "schedule", name, body, who.actor, check)


async def _found(who: Caller, request: Request, name: str, permission: str) -> Schedule:
    """The schedule, if it is in reach; NotFound if the caller may not even see it."""
    try:
        found = await verbs.get(who.database, name, as_text=True)
        if await _covers(who, permission, found.workspace, found.job_type):
            return found
        if not await _covers(who, VIEW, found.workspace, found.job_type):
            raise NotFound(f"no schedule {name}")
    except NotFound:
        if permission == VIEW:
            raise
        await who.miss(VIEW, action_of(request), "schedule", name)
    await who.refuse(permission, action_of(request), "schedule", name)
    raise NotFound(f"no schedule {name}")


async def _check_place(
    who: Caller,
    request: Request,
    name: str,
    workspace: str,
    job_type: str,
    priority: int | None,
) -> Bounds:
    """Refuse a schedule out of reach or with too high a priority; return the allowed bounds."""
    state = await who.database.run(lanes.read())
    reach, lane = who.access.reach(MANAGE), state.lane_of(job_type)
    if not reach.covers(owner=None, workspace=workspace, lane=lane):
        await who.refuse(f"{MANAGE} there", action_of(request), "schedule", name)
    bounds = reach.bounds(owner=None, workspace=workspace, lane=lane)
    check_priority_bound(priority, bounds)
    return bounds


async def _covers(who: Caller, permission: str, workspace: str, job_type: str) -> bool:
    state = await who.database.run(lanes.read())
    reach = who.access.reach(permission)
    return reach.covers(owner=None, workspace=workspace, lane=state.lane_of(job_type))


def _time_of(cursor: str | None) -> datetime | None:
    try:
        at = None if cursor is None else datetime.fromisoformat(cursor)
    except ValueError:
        at = None
    if cursor is not None and (at is None or at.tzinfo is None):
        raise InvalidInput("cursor", "must be the next_cursor of a page")
    return at
