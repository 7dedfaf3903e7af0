"""Routes that stop one worker from claiming, and let it go on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Response

from laneway.api.http.idempotency import Idempotent
from laneway.api.http.lane_scope import VIEW, LaneCaller, over_lanes
from laneway.api.http.problems import errors
from laneway.api.http.responses import render
from laneway.api.models.workers import WorkerOut
from laneway.control import workers
from laneway.domain.overview import WorkerRow, worker_to_dict
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
    """One worker claims nothing more, as soon as it learns of it; what it runs finishes.

    It needs the permission on every lane that the worker serves. A worker that has ended is
    refused.
    """
    return await _tell(caller, worker_id, guard, workers.drain)


@router.post(
    "/{worker_id}/resume",
    operation_id="resume_worker",
    response_model=WorkerOut,
    responses=errors(404, 409, 413),
)
async def resume_worker(caller: Manager, worker_id: UUID, guard: Idempotent) -> Response:
    """A drained worker claims again."""
    return await _tell(caller, worker_id, guard, workers.resume)


async def _tell(
    caller: LaneCaller,
    worker_id: UUID,
    guard: Idempotent,
    verb: Callable[..., Awaitable[WorkerRow]],
) -> Response:
    await _check(caller, worker_id)

    async def apply(db: Database) -> Response:
        row = await verb(db, worker_id, by=caller.who.actor)
        return render(WorkerOut, worker_to_dict(row))

    return await guard.run(apply)


async def _check(caller: LaneCaller, worker_id: UUID) -> None:
    """Returns for a worker all of whose lanes are in reach; one that is not seen is not there."""
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
