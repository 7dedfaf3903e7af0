"""Drains and resumes a single worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Response

from laneway.api.http.idempotency import IdempotencyGuard, Idempotent
from laneway.api.http.lane_scope import VIEW, LaneCaller, over_lanes
from laneway.api.http.problems import errors
from laneway.api.http.responses import Json
from laneway.api.models.workers import WorkerOut
from laneway.control import workers
from laneway.domain.codec import to_json
from laneway.domain.overview import WorkerRow
from laneway.errors import NotFound
from laneway.store.database import Database

PERMISSION = "workers:manage"

router = APIRouter(prefix="/admin/workers", tags=["workers"])

Manager = Annotated[LaneCaller, Depends(over_lanes(PERMISSION))]


@router.post(
    "/{worker_id}/drain",
    operation_id="drain_worker",
    response_model=WorkerOut,
    responses=errors(404, 409, 413),
)
async def drain_worker(caller: Manager, worker_id: UUID, guard: Idempotent) -> Response:
    """Stop a worker from claiming jobs; its running jobs finish.

    Needs the permission on every lane that the worker serves. A worker that has ended is refused.
    """
    return await _change(caller, worker_id, guard, workers.drain)


@router.post(
    "/{worker_id}/resume",
    operation_id="resume_worker",
    response_model=WorkerOut,
    responses=errors(404, 409, 413),
)
async def resume_worker(caller: Manager, worker_id: UUID, guard: Idempotent) -> Response:
    """Let a drained worker claim jobs again."""
    return await _change(caller, worker_id, guard, workers.resume)


async def _change(
    caller: LaneCaller,
    worker_id: UUID,
    guard: IdempotencyGuard,
    verb: Callable[..., Awaitable[WorkerRow]],
) -> Response:
    await _check(caller, worker_id)

    async def apply(db: Database) -> Response:
        row = await verb(db, worker_id, by=caller.who.actor)
        return Json(to_json(row))

    return await guard.run(apply)


async def _check(caller: LaneCaller, worker_id: UUID) -> None:
    """Refuse a worker with a lane out of reach; NotFound if the caller may not even see it."""
    try:
        worker = await workers.get(caller.who.database, worker_id)
    except NotFound:
        await caller.who.miss(VIEW, caller.action, "worker", str(worker_id))
    if caller.lanes is None or (worker.lanes is not None and caller.lanes.issuperset(worker.lanes)):
        return
    seen = caller.who.access.reach(VIEW).lanes
    if seen is None or worker.lanes is None or not seen.isdisjoint(worker.lanes):
        wanted = f"{PERMISSION} on all lanes of this worker"
        await caller.who.refuse(wanted, caller.action, "worker", str(worker_id))
    await caller.who.miss(VIEW, caller.action, "worker", str(worker_id))
