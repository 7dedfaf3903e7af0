"""Operators' routes: worker status, freeze, single jobs."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response

from laneway.api.http.auth import Caller, action_of, needs
from laneway.api.http.idempotency import IdempotencyGuard, Idempotent
from laneway.api.http.job_access import covers
from laneway.api.http.lane_scope import LaneCaller, check_named, over_lanes
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import EXPENSIVE
from laneway.api.http.responses import Json
from laneway.api.models.workers import (
    FreezeOut,
    FreezeRequest,
    JobSummaryOut,
    PriorityRequest,
    StatusOut,
    StopRequest,
)
from laneway.control import freeze as freezing
from laneway.control import jobs, workers
from laneway.control.freeze import Hold
from laneway.domain.bounds import check_priority_bound
from laneway.domain.codec import to_json
from laneway.domain.job import Job
from laneway.domain.overview import JobSummary
from laneway.errors import LanewayError, Refused
from laneway.store import jobs as store
from laneway.store.database import Database

router = APIRouter(prefix="/admin/workers", tags=["workers"])

PERMISSION = "workers:manage"
Viewer = Annotated[LaneCaller, Depends(over_lanes("workers:view"))]
Manager = Annotated[LaneCaller, Depends(over_lanes(PERMISSION))]
Anyone = Annotated[Caller, Depends(needs(PERMISSION))]


@router.get(
    "/status",
    operation_id="read_status",
    dependencies=EXPENSIVE,
    response_model=StatusOut,
    responses=errors(),
)
async def read_status(caller: Viewer) -> Response:
    """Show slots, running and waiting jobs, live workers and the leader.

    Limited to the lanes in reach, and to workers that serve any of them.
    """
    seen = await workers.overview(caller.who.database)
    foreign = await workers.oldest_transaction(caller.who.database)
    in_reach = replace(
        seen,
        lanes=[each for each in seen.lanes if caller.reaches(each.lane.name)],
        active=[each for each in seen.active if caller.reaches(each.lane)],
        workers=[each for each in seen.workers if caller.reaches_any(each.lanes)],
    )
    return Json(
        {
            **in_reach.to_dict(),
            "leader": to_json(seen.leader.id) if seen.leader else None,
            "oldest_transaction": to_json(foreign) if caller.lanes is None else None,
        }
    )


@router.post(
    "/freeze",
    operation_id="freeze_lanes",
    response_model=FreezeOut,
    responses=errors(404, 409, 413),
)
async def freeze_lanes(
    caller: Manager, guard: Idempotent, body: FreezeRequest | None = None
) -> Response:
    """Drain lanes and report what still runs in them, immediately or after the deadline."""
    wanted = body or FreezeRequest()
    await check_named(caller, wanted.lanes)
    if guard.has_key:
        return await _freeze_once(caller.who, guard, wanted)
    frozen = await freezing.freeze(
        caller.who.database,
        wanted.lanes,
        by=caller.who.actor,
        deadline=wanted.deadline,
        or_thaw=wanted.or_thaw,
    )
    return Json(to_json(frozen))


async def _freeze_once(who: Caller, guard: IdempotencyGuard, wanted: FreezeRequest) -> Response:
    """Freeze in parts: a repeated request waits for the lanes that the first one drained."""

    async def begin(db: Database) -> str:
        return json.dumps(await freezing.begin(db, wanted.lanes, by=who.actor))

    async def undo(db: Database, begun: str) -> None:
        if wanted.or_thaw:
            await freezing.undo(db, Hold(*json.loads(begun)), by=who.actor)

    begun = await guard.begin(begin)
    if isinstance(begun, Response):
        return begun
    hold = Hold(*json.loads(begun))
    try:
        seen = await freezing.wait(who.database, hold, wanted.deadline)
    except Refused:
        # Another request with the key may have ended and resumed the lanes: return its response.
        response = await guard.give_up(undo)
        if response is None:
            raise
        return response
    except (asyncio.CancelledError, LanewayError):
        # Without or_thaw the lanes stay drained, and the next request waits for them.
        if wanted.or_thaw:
            await guard.give_up(undo)
        raise

    async def end(db: Database) -> Response:
        ended = await freezing.end(db, hold, seen, by=who.actor, or_thaw=wanted.or_thaw)
        return Json(to_json(ended))

    return await guard.run(end)


@router.post(
    "/jobs/{job_id}/cancel",
    operation_id="cancel_running_job",
    response_model=JobSummaryOut,
    responses=errors(404, 409, 413),
)
async def cancel_running_job(
    who: Anyone,
    request: Request,
    job_id: UUID,
    guard: Idempotent,
    body: StopRequest | None = None,
) -> Response:
    """Ask the worker of a running job to stop it; other jobs are refused."""
    await _check_job(who, request, job_id)
    reason = None if body is None else body.reason

    async def apply(db: Database) -> Response:
        cancelled = await jobs.cancel(db, job_id, by=who.actor, reason=reason, only="running")
        return Json(to_json(JobSummary.of(cancelled)))

    return await guard.run(apply)


@router.patch(
    "/jobs/{job_id}/priority",
    operation_id="reprioritize_job",
    response_model=JobSummaryOut,
    responses=errors(404, 409, 413),
)
async def reprioritize_job(
    who: Anyone, request: Request, job_id: UUID, body: PriorityRequest
) -> Response:
    """Change the priority of a waiting job; a running or ended one is refused."""
    job = await _check_job(who, request, job_id)
    reach = who.access.reach(PERMISSION)
    bounds = reach.bounds(owner=job.created_by, workspace=job.workspace, lane=job.lane)
    check_priority_bound(body.priority, bounds)
    changed = await jobs.reprioritize(who.database, job_id, body.priority, by=who.actor)
    return Json(to_json(JobSummary.of(changed)))


async def _check_job(who: Caller, request: Request, job_id: UUID) -> Job:
    """The job, if it is in reach; NotFound if the caller may not even read it."""
    job = await who.database.run(store.get(job_id))
    if job is not None and covers(who.access.reach(PERMISSION), job):
        return job
    if job is not None and covers(who.access.reach("jobs:read"), job):
        await who.refuse(f"{PERMISSION} for this job", action_of(request), "job", str(job_id))
    seen_by = PERMISSION if who.access.allows_everywhere(PERMISSION) else "jobs:read"
    await who.miss(seen_by, action_of(request), "job", str(job_id))
