"""Routes of operators: what runs where, the pause gate, freeze and thaw, one job."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response

from laneway.api.answer import told
from laneway.api.auth import Caller, act_of, needs
from laneway.api.idempotency import OnceOnly
from laneway.api.job_access import covers
from laneway.api.problems import answers
from laneway.api.reach import LaneCaller, everywhere, over_lanes
from laneway.api.worker_models import (
    CancelOrder,
    FreezeOrder,
    FreezeOut,
    GateOut,
    JobStandingOut,
    PriorityOrder,
    StatusOut,
    ThawOrder,
    ThawOut,
)
from laneway.control import freeze as freezing
from laneway.control import jobs, lanes, workers
from laneway.domain.overview import WorkerRow, active_to_dict, worker_to_dict
from laneway.domain.states import Status
from laneway.errors import NotFound, Refused
from laneway.store import jobs as store
from laneway.store.database import Database

router = APIRouter(prefix="/admin/workers", tags=["workers"])

PERMISSION = "workers:manage"
Viewer = Annotated[LaneCaller, Depends(over_lanes("workers:view"))]
Manager = Annotated[LaneCaller, Depends(over_lanes(PERMISSION))]
Keeper = Annotated[Caller, Depends(everywhere(PERMISSION))]
Anyone = Annotated[Caller, Depends(needs(PERMISSION))]


@router.get("/status", operation_id="read_status", response_model=StatusOut, responses=answers())
async def read_status(caller: Viewer) -> Any:
    """Slots per lane, which job holds which slot since when, what waits, who is there, who leads.

    Of the lanes in reach, and of the workers that serve any of them.
    """
    seen = await workers.overview(caller.who.database)
    foreign = await workers.oldest_transaction(caller.who.database)
    served = [each for each in seen.workers if caller.reaches_any(each.lanes)]
    return {
        **seen.gate._asdict(),
        "leader": seen.leader.id if seen.leader else None,
        "lanes": [each.to_dict() for each in seen.lanes if caller.reaches(each.lane.name)],
        "active": [active_to_dict(each) for each in seen.active if caller.reaches(each.lane)],
        "workers": [worker_to_dict(each) for each in served if each.is_live],
        "silent": [worker_to_dict(each) for each in served if _is_silent(each)],
        "oldest_transaction": foreign._asdict() if foreign and caller.lanes is None else None,
    }


@router.post("/pause", operation_id="pause_claims", response_model=GateOut, responses=answers())
async def pause_claims(who: Keeper) -> Any:
    """Shuts the pause gate: no claim commits until it is opened."""
    return (await lanes.pause(who.database, by=who.actor))._asdict()


@router.post("/resume", operation_id="resume_claims", response_model=GateOut, responses=answers())
async def resume_claims(who: Keeper) -> Any:
    """Opens the pause gate; drained lanes stay drained."""
    return (await lanes.resume_all(who.database, by=who.actor))._asdict()


@router.post(
    "/freeze",
    operation_id="freeze_lanes",
    response_model=FreezeOut,
    responses=answers(404, 409, 413),
)
async def freeze_lanes(caller: Manager, order: FreezeOrder | None = None) -> Any:
    """Drains lanes and answers what still runs in them, at once or after the deadline."""
    wanted = order or FreezeOrder()
    await _check_all(caller, wanted.lanes)
    frozen = await freezing.freeze(
        caller.who.database,
        wanted.lanes,
        by=caller.who.actor,
        deadline=wanted.deadline,
        or_thaw=wanted.or_thaw,
    )
    return frozen.to_dict()


@router.post(
    "/thaw", operation_id="thaw_lanes", response_model=ThawOut, responses=answers(404, 409, 413)
)
async def thaw_lanes(caller: Manager, order: ThawOrder | None = None) -> Any:
    """Makes frozen lanes again what they were before."""
    wanted = order or ThawOrder()
    await _check_all(caller, wanted.lanes)
    thawed = await freezing.thaw(caller.who.database, wanted.lanes, by=caller.who.actor)
    return {"lanes": [each._asdict() for each in thawed]}


@router.post(
    "/jobs/{job_id}/cancel",
    operation_id="cancel_running_job",
    response_model=JobStandingOut,
    responses=answers(404, 409, 413),
)
async def cancel_running_job(
    who: Anyone,
    request: Request,
    job_id: UUID,
    once: OnceOnly,
    order: CancelOrder | None = None,
) -> Response:
    """Asks the worker of a running job to stop it; a job that is not running is refused."""
    await _check_job(who, request, job_id)
    reason = None if order is None else order.reason

    async def act(db: Database) -> Response:
        found = await db.run(store.get(job_id))
        if found is None or found.status is not Status.RUNNING:
            state = "gone" if found is None else found.status
            raise Refused(f"job {job_id} is {state}: only running jobs are cancelled here")
        cancelled = await jobs.cancel(db, job_id, by=who.actor, reason=reason)
        return told(JobStandingOut, JobStandingOut.of(cancelled))

    return await once.answer(act)


@router.patch(
    "/jobs/{job_id}/priority",
    operation_id="reprioritize_job",
    response_model=JobStandingOut,
    responses=answers(404, 409, 413),
)
async def reprioritize_job(
    who: Anyone, request: Request, job_id: UUID, order: PriorityOrder
) -> Any:
    """Gives a waiting job another place in its lane; one that runs or has ended is refused."""
    await _check_job(who, request, job_id)
    changed = await jobs.reprioritize(who.database, job_id, order.priority, by=who.actor)
    return JobStandingOut.of(changed)


def _is_silent(worker: WorkerRow) -> bool:
    """Whether it went without a word, or cannot be heard."""
    return not worker.is_live and worker.stopped_at is None


async def _check_job(who: Caller, request: Request, job_id: UUID) -> None:
    """Returns for a job in reach; one that the caller may not even read is not there."""
    job = await who.database.run(store.get(job_id))
    if job is not None and covers(who.access.reach(PERMISSION), job):
        return
    if job is not None and covers(who.access.reach("jobs:read"), job):
        await who.refuse(f"{PERMISSION} for this job", act_of(request), "job", str(job_id))
    raise NotFound(f"no job {job_id}")


async def _check_all(caller: LaneCaller, names: list[str] | None) -> None:
    if names is None:
        await caller.check_whole()
    for name in names or ():
        await caller.check(name)
