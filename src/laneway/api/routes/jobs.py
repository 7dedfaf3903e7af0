"""Jobs: list, show, explain, cancel, approve, reject, retry, run now, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from laneway.api.http.auth import Caller, needs
from laneway.api.http.idempotency import Idempotent
from laneway.api.http.job_access import (
    actable,
    check_retry,
    debug_reach,
    readable,
    shown,
    shown_whole,
    shows_debug,
    within_quota,
)
from laneway.api.http.paging import Cursor, Limit
from laneway.api.http.portions import AT_FIRST, MAX_BYTES, next_count
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import EXPENSIVE
from laneway.api.http.responses import Json
from laneway.api.models.explanation import as_seen
from laneway.api.models.jobs import (
    ApprovalRequest,
    AttemptPage,
    CancelRequest,
    ExplanationOut,
    IdMatchesOut,
    JobDetailOut,
    JobOut,
    JobPage,
    JobQuery,
    Rejection,
)
from laneway.control import approval, explain
from laneway.control import jobs as verbs
from laneway.control.nearest_type import SeenTypes
from laneway.domain.codec import json_time, to_json
from laneway.domain.job import Job
from laneway.domain.job import shown as shown_attempt
from laneway.domain.job_id import MOST_PREFIXES
from laneway.domain.json_writer import omits_large_values, write_json
from laneway.domain.states import TERMINAL
from laneway.store import quotas
from laneway.store.database import Database
from laneway.store.jobs import MAX_ATTEMPTS

router = APIRouter(prefix="/jobs", tags=["jobs"])

Reader = Annotated[Caller, Depends(needs("jobs:read"))]
Canceller = Annotated[Caller, Depends(needs("jobs:cancel"))]
Approver = Annotated[Caller, Depends(needs("jobs:approve"))]
_post = partial(router.post, response_model=JobOut, responses=errors(404, 409, 413))


@router.get(
    "",
    operation_id="list_jobs",
    response_model=JobPage,
    responses=errors(),
    dependencies=EXPENSIVE,
)
async def list_jobs(who: Reader, query: Annotated[JobQuery, Query()]) -> Response:
    """List jobs in reach, newest first; a page is shorter if jobs are large or hard to find.

    A search examines about 30,000 jobs. Then `looked_back_to` says how far it came, and
    `next_cursor` continues from there.
    With `status=awaiting_approval`, `oldest_first=true` starts with the longest wait.
    """
    wanted = query.within(who.access.reach("jobs:read"), debug_reach(who.access))
    page = await verbs.find(
        who.database,
        wanted,
        limit=query.limit,
        cursor=query.cursor,
        oldest_first=query.oldest_first,
    )
    cursor, looked_back_to = page.next_cursor, page.looked_back_to
    items: list[bytes] = []
    start, at_once = 0, AT_FIRST
    while start < len(page.items):
        numbers = page.items[start : start + at_once]
        start += at_once
        jobs = await verbs.read(who.database, wanted, numbers, values=not omits_large_values())
        # In a thread: writing megabytes would delay other requests.
        items += await asyncio.to_thread(_rendered, who, jobs)
        size = sum(map(len, items))
        if size > MAX_BYTES and start < len(page.items):
            cursor, looked_back_to = str(numbers[-1]), None
            break
        at_once = next_count(size, len(items))
    stopped = None if looked_back_to is None else json_time(looked_back_to)
    rest = {"next_cursor": cursor, "looked_back_to": stopped}
    body = b'{"items":[%b],%b' % (b",".join(items), write_json(rest)[1:])
    return Response(body, media_type="application/json")


def _rendered(who: Caller, jobs: Iterable[Job]) -> list[bytes]:
    return [write_json(shown(who, job)) for job in jobs]


@router.get("/ids", operation_id="find_job_ids", response_model=IdMatchesOut, responses=errors())
async def find_job_ids(
    who: Reader,
    prefix: Annotated[
        list[Annotated[str, Field(max_length=36)]],
        Query(
            max_length=MOST_PREFIXES,
            description="The first digits of an id, at least four; perhaps `…` and the last ones",
        ),
    ],
) -> Response:
    """Find the jobs in reach whose ids begin with each prefix, at most five of each."""
    found = await verbs.find_ids(who.database, prefix, within=who.access.reach("jobs:read"))
    return Json({"items": to_json(found)})


@router.get("/{job_id}", operation_id="get_job", response_model=JobDetailOut, responses=errors(404))
async def get_job(who: Reader, job_id: UUID) -> Response:
    """Show one job with its attempts; private errors and logs need jobs:debug or one's own job."""
    await readable(who, job_id)
    return Json(shown_whole(who, await approval.review(who.database, job_id)))


@router.get(
    "/{job_id}/attempts",
    operation_id="list_attempts",
    dependencies=EXPENSIVE,
    response_model=AttemptPage,
    responses=errors(404),
)
async def list_attempts(
    who: Reader, job_id: UUID, limit: Limit = MAX_ATTEMPTS, cursor: Cursor = None
) -> Response:
    """List attempts of a job, newest first; private errors and logs as with the job."""
    job = await readable(who, job_id)
    page = await verbs.attempts(who.database, job_id, limit=limit, cursor=cursor)
    debug = shows_debug(who, job)
    items = [shown_attempt(one, debug=debug) for one in page.items]
    return Json({"items": items, "next_cursor": page.next_cursor})


@router.get(
    "/{job_id}/explain",
    operation_id="explain_job",
    dependencies=EXPENSIVE,
    response_model=ExplanationOut,
    responses=errors(404),
)
async def explain_job(who: Reader, job_id: UUID) -> Response:
    """List every reason why a job is not running, and estimate when it starts."""
    debug = shows_debug(who, await readable(who, job_id))
    seen = SeenTypes(who.access.reach("workers:view").lanes, who.access.reach("jobs:read"))
    found = await explain.explain(
        who.database, job_id, debug=debug, reader=who.access.name, seen_types=seen
    )
    return Json(await as_seen(who, found))


@_post("/{job_id}/cancel", operation_id="cancel_job")
async def cancel_job(
    who: Canceller, job_id: UUID, guard: Idempotent, body: CancelRequest | None = None
) -> Response:
    """Cancel a waiting job immediately; ask the worker of a running job to stop it."""
    await actable(who, job_id, "jobs:cancel", "job.cancelled")
    reason = body.reason if body else None

    async def apply(db: Database) -> Response:
        return Json(shown(who, await verbs.cancel(db, job_id, by=who.actor, reason=reason)))

    return await guard.run(apply)


@_post("/{job_id}/approve", operation_id="approve_job")
async def approve_job(
    who: Approver, job_id: UUID, guard: Idempotent, decision: ApprovalRequest | None = None
) -> Response:
    """Approve a job that awaits approval."""
    await actable(who, job_id, "jobs:approve", "job.approved")
    given = decision or ApprovalRequest()

    async def apply(db: Database) -> Response:
        job = await approval.approve(
            db, job_id, by=who.actor, comment=given.comment, seal=given.seal
        )
        return Json(shown(who, job))

    return await guard.run(apply)


@_post("/{job_id}/reject", operation_id="reject_job")
async def reject_job(
    who: Approver, job_id: UUID, guard: Idempotent, decision: Rejection
) -> Response:
    """Reject a job that awaits approval; it is cancelled."""
    await actable(who, job_id, "jobs:approve", "job.rejected")

    async def apply(db: Database) -> Response:
        job = await approval.reject(db, job_id, by=who.actor, reason=decision.reason)
        return Json(shown(who, job))

    return await guard.run(apply)


@_post("/{job_id}/retry", operation_id="retry_job")
async def retry_job(request: Request, who: Canceller, job_id: UUID, guard: Idempotent) -> Response:
    """Queue a failed or cancelled job again, with a new retry budget."""
    found = await actable(who, job_id, "jobs:cancel", "job.retried")
    quota = await check_retry(who, found)

    async def apply(db: Database) -> Response:
        async with db.joined() as one:
            if quota is not None:
                asked = quotas.RequestedJob(found.workspace, found.job_type, None)
                await one.run(quotas.check(quota, [asked]))
            job = await verbs.retry(one, job_id, by=who.actor)
            if quota is not None:
                await one.run(quotas.charge(quota, [job_id]))
        return Json(shown(who, job))

    return await within_quota(request, quota, lambda: guard.run(apply))


@_post("/{job_id}/run_now", operation_id="run_job_now")
async def run_job_now(who: Canceller, job_id: UUID, guard: Idempotent) -> Response:
    """Start a job now that waits for a time: delayed, snoozed, backing off or asleep.

    It becomes due and starts when its lane has a free slot. Other jobs are refused.
    """
    await actable(who, job_id, "jobs:cancel", "job.made_due")

    async def apply(db: Database) -> Response:
        return Json(shown(who, await verbs.run_now(db, job_id, by=who.actor)))

    return await guard.run(apply)


@router.delete(
    "/{job_id}",
    operation_id="delete_job",
    response_model=JobOut,
    response_description="It had not started, and is cancelled",
    responses={204: {"description": "It had ended, and is deleted"}, **errors(404, 409)},
)
async def delete_job(who: Canceller, job_id: UUID) -> Response:
    """Cancel a waiting job, or delete one that has ended; a running job is refused."""
    job = await actable(who, job_id, "jobs:cancel", "job.deleted")
    if job.status in TERMINAL:
        await verbs.delete(who.database, job_id, by=who.actor)
        return Response(status_code=204)
    job = await verbs.cancel(who.database, job_id, by=who.actor, only="waiting")
    return Json(shown(who, job))
