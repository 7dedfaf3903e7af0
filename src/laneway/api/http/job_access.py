"""The jobs that a caller may see, change and submit, and which fields it is shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from fastapi import Request

from laneway.api.http.auth import Caller
from laneway.api.http.full_principals import FullPrincipals
from laneway.control.bulk import exceeds_priority_bound
from laneway.domain.bounds import Bounds, check_priority_bound, narrowest
from laneway.domain.job import Job
from laneway.domain.job import shown as private_shown
from laneway.domain.permissions import Access, Reach, Term
from laneway.domain.review import Review
from laneway.errors import InvalidInput, NotFound, QuotaExceeded
from laneway.store import job_places, lanes, quotas
from laneway.store import jobs as store
from laneway.store.database import Database
from laneway.store.quotas import Quota

T = TypeVar("T")


def covers(reach: Reach, job: Job) -> bool:
    return reach.covers(owner=job.created_by, workspace=job.workspace, lane=job.lane)


async def readable(who: Caller, job_id: UUID) -> Job:
    """The job, or NotFound if it does not exist or is out of reach."""
    job = await _seen(who, job_id)
    if job is None:
        raise NotFound(f"no job {job_id}")
    return job


async def _seen(who: Caller, job_id: UUID) -> Job | None:
    job = await who.database.run(store.get(job_id))
    return job if job is not None and covers(who.access.reach("jobs:read"), job) else None


async def actable(who: Caller, job_id: UUID, permission: str, action: str) -> Job:
    """The job, if the caller may read and change it; a refusal is recorded in the audit."""
    job = await _seen(who, job_id)
    if job is None:
        await who.miss("jobs:read", action, "job", str(job_id))
    if not covers(who.access.reach(permission), job):
        await who.refuse(f"{permission} for this job", action, "job", str(job_id))
    return job


async def check_submits(who: Caller, wanted: Iterable[Wanted]) -> Quota | None:
    """Refuse jobs that the caller may not submit; return the quota they count against."""
    reach = who.access.reach("jobs:submit")
    asked = list(wanted)
    # Look up lanes only for callers that are limited to some.
    knows_lanes = not reach.is_whole and any(term.lanes is not None for term in reach.terms)
    state: lanes.ControlState | None = None
    if knows_lanes:
        state = await who.database.run(lanes.read())
    found: dict[tuple[str, str], Bounds] = {}
    for job in asked:
        place = (job.workspace, job.job_type)
        if place in found:
            continue
        lane = state.lane_of(job.job_type) if state is not None else None
        at = {"owner": who.access.name, "workspace": job.workspace, "lane": lane}
        if not reach.covers(**at):
            needed = f"jobs:submit in the workspace {job.workspace} for {job.job_type}"
            await who.refuse(needed, "job.submitted", "job")
        found[place] = reach.bounds(**at)
    for job in asked:
        bounds = found[job.workspace, job.job_type]
        check_priority_bound(job.priority, bounds, f"{job.place}priority")
    return quota_of(who, narrowest(found.values())) if found else None


async def check_parents(who: Caller, parents: Collection[UUID]) -> None:
    """Refuse parents that the caller may not read; they look like jobs that do not exist."""
    reach = who.access.reach("jobs:read")
    if not parents or reach.is_whole:
        return
    places = await who.database.run(job_places.read(parents))
    for parent in parents:
        place = places.get(parent)
        if place is None or not reach.covers(**place._asdict()):
            raise InvalidInput("after", f"no job {parent}")


class Wanted(NamedTuple):
    """The properties of a submitted job that grants depend on; `place`: its path in the request."""

    workspace: str
    job_type: str
    priority: int | None
    place: str = ""


async def check_retry(who: Caller, job: Job) -> Quota | None:
    """Refuse a job above the priority that the grants allow; return the quota it counts against."""
    at = {"owner": job.created_by, "workspace": job.workspace, "lane": job.lane}
    bounds = who.access.reach("jobs:cancel").bounds(**at)
    if await exceeds_priority_bound(who.database, job, bounds):
        check_priority_bound(job.priority, bounds)
    return quota_of(who, bounds)


def quota_of(who: Caller, bounds: Bounds) -> Quota | None:
    return Quota(who.access.principal_id, bounds) if bounds.needs_counting else None


async def within_quota(
    request: Request, quota: Quota | None, submit: Callable[[], Awaitable[T]]
) -> T:
    """Submit; if the quota is full, recount and try again, as jobs may have started or ended."""
    if quota is None:
        return await submit()
    full: FullPrincipals = request.app.state.full_principals
    async with full.turn(quota.principal_id):
        try:
            return await submit()
        except QuotaExceeded:
            full.note(quota.principal_id)
            database: Database = request.app.state.database
            if not await database.run(quotas.sweep(quota.principal_id)):
                raise
            return await submit()


def debug_reach(access: Access) -> Reach:
    """The jobs whose tracebacks, log lines and private messages the caller may see."""
    return Reach((*access.reach("jobs:debug").terms, Term(owner=access.name)))


def shows_debug(who: Caller, job: Job) -> bool:
    """Whether the caller may see the job's tracebacks and log lines."""
    return covers(debug_reach(who.access), job)


def shown(who: Caller, job: Job) -> dict[str, Any]:
    """A job as lists and verbs return it."""
    return private_shown(job, debug=shows_debug(who, job))


def shown_whole(who: Caller, review: Review) -> dict[str, Any]:
    """A job with its attempts and decisions."""
    return review.to_dict(debug=shows_debug(who, review.job))
