"""Submits one job or a batch.

The job, its audit entry and the response stored for an Idempotency-Key are one transaction. Workers
are woken after the commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from starlette.types import Message, Receive, Scope, Send

from laneway.api.http.auth import Caller, identify, needs
from laneway.api.http.bodies import JobBodyRoute, forget_read, read_once
from laneway.api.http.group_commit import GroupCommit, UniqueType
from laneway.api.http.idempotency import Idempotent
from laneway.api.http.job_access import (
    Wanted,
    check_parents,
    check_submits,
    covers,
    shown,
    within_quota,
)
from laneway.api.http.problems import errors
from laneway.api.http.responses import Json, location
from laneway.api.models.jobs import JobOut, JobRequest, JobRequestFields, NewJobs, SubmittedJobs
from laneway.client import Client, Given, JobHandle, JobOptions
from laneway.control.audit import audited
from laneway.domain.job import Job
from laneway.errors import InvalidInput, Refused
from laneway.observability import tracing
from laneway.store import jobs as store
from laneway.store import quotas
from laneway.store.database import Database
from laneway.store.quotas import Quota
from laneway.store.statement import Statement

router = APIRouter(tags=["jobs"], route_class=JobBodyRoute)

Submitter = Annotated[Caller, Depends(needs("jobs:submit"))]
_LOCATION: dict[str, Any] = {
    "Location": {"description": "Path of the job", "schema": {"type": "string"}}
}


class _FastPathRoute(JobBodyRoute):
    """Handles a plain valid request without FastAPI, and every other request with it.

    FastAPI's dependency resolution costs more than all of a plain submit.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._fastapi, self.app = self.app, self._handle

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        headers = request.headers
        response = None
        is_plain = "idempotency-key" not in headers and not scope["query_string"]
        if is_plain and headers.get("content-type") == "application/json":
            # The middleware authenticates before the first byte is read.
            body = await request.body()
            who = await identify(request)
            limits = request.app.state.settings.payload_limits
            try:
                job = JobRequest.model_validate(await read_once(scope, body, limits))
            except (ValueError, RecursionError, InvalidInput):
                pass  # FastAPI reports it below
            else:
                is_unique = (
                    job.unique_key is not None or job.unique_for or job.unique_by is not None
                )
                if not is_unique and not job.after:
                    response = await _submit_plain(request, who, job)

            async def again() -> Message:
                return {"type": "http.request", "body": body, "more_body": False}

            receive = again
        try:
            await (response or self._fastapi)(scope, receive, send)
        finally:
            forget_read(scope)


async def _submit_plain(request: Request, who: Caller, job: JobRequest) -> Response | None:
    """Submit a job without unique_key, parents and Idempotency-Key, in a group commit.

    None: nothing is submitted, because jobs of this type are unique.
    """
    quota = await check_submits(who, [Wanted(job.workspace, job.job_type, job.priority)])
    client: Client = request.app.state.client
    group_commit: GroupCommit = request.app.state.group_commit
    with tracing.sending(job.job_type) as sent:
        options: JobOptions = {**job.options(), "created_by": str(who.actor)}
        new = await client.prepare(job.job_type, job.payload, **options)
        if new.is_unique:
            return None
        try:
            stored = await within_quota(
                request, quota, lambda: group_commit.submit(new, who.actor, quota)
            )
        except UniqueType:
            return None
        sent.record(stored.id, duplicate=False)
    client.wake([JobHandle(stored.id, stored.job_type, stored.status, False, client)])
    headers = {"Location": location(request, f"/jobs/{stored.id}")}
    return Json(shown(who, stored), 202, headers)


plain = APIRouter(tags=["jobs"], route_class=_FastPathRoute)


@plain.post(
    "/jobs",
    operation_id="submit_job",
    status_code=202,
    response_model=JobOut,
    response_description="Submitted",
    responses={
        200: {
            "model": JobOut,
            "description": "This existing job already had the unique_key",
            "headers": _LOCATION,
        },
        202: {"headers": _LOCATION},
        **errors(409, 413),
    },
)
async def submit_job(
    request: Request, who: Submitter, job: JobRequest, guard: Idempotent
) -> Response:
    """Submit one job; returns the existing job instead if one already has its `unique_key`."""
    quota = await check_submits(who, [Wanted(job.workspace, job.job_type, job.priority)])
    await check_parents(who, job.after)
    client: Client = request.app.state.client
    options: JobOptions = {**job.options(), "created_by": str(who.actor)}
    made: list[JobHandle] = []

    async def apply(db: Database) -> Response:
        async with (
            db.joined() as one,
            audited(one, who.actor, "job.submitted", "job") as change,
            one.connection() as conn,
        ):
            if quota is not None:
                await one.run(check_room(quota, [(job.workspace, job)]))
            handle = await client.submit(job.job_type, job.payload, conn=conn, **options)
            made[:] = [handle]
            if quota is not None and not handle.duplicate:
                await one.run(quotas.charge(quota, [handle.id]))
            stored = await one.run(store.get(handle.id))
            if stored is None:
                # The existing job was deleted between the two statements.
                raise Refused("the job with this unique_key was just deleted: submit again")
            change.is_recorded = not handle.duplicate
            change.name, change.workspace = str(handle.id), stored.workspace
            change.after = {"job_type": stored.job_type, "status": handle.status.value}
        values = shown(who, _own_or_readable(who, stored, handle))
        if handle.duplicate:
            values["duplicate"] = True
        headers = {"Location": location(request, f"/jobs/{handle.id}")}
        return Json(values, 200 if handle.duplicate else 202, headers)

    return await within_quota(request, quota, lambda: guard.run(apply, lambda: client.wake(made)))


@router.post(
    "/jobs/batch",
    operation_id="submit_jobs",
    status_code=202,
    response_model=SubmittedJobs,
    response_description="Submitted",
    responses={
        200: {"model": SubmittedJobs, "description": "All jobs existed already, by unique_key"},
        **errors(409, 413),
    },
)
async def submit_jobs(
    request: Request, who: Submitter, batch: NewJobs, guard: Idempotent
) -> Response:
    """Submit up to 1,000 jobs in one transaction; results are in the order of the request."""
    quota = await check_submits(
        who,
        (
            Wanted(job.workspace, job.job_type, job.priority, f"jobs[{i}].")
            for i, job in enumerate(batch.jobs)
        ),
    )
    await check_parents(who, {parent for job in batch.jobs for parent in job.after})
    client: Client = request.app.state.client
    made: list[JobHandle] = []
    new: list[Given] = [
        (job.job_type, job.payload, {**job.options(), "created_by": str(who.actor)})
        for job in batch.jobs
    ]

    async def apply(db: Database) -> Response:
        async with (
            db.joined() as one,
            audited(one, who.actor, "job.submitted", "job") as change,
            one.connection() as conn,
        ):
            if quota is not None:
                await one.run(check_room(quota, [(job.workspace, job) for job in batch.jobs]))
            made[:] = await client.submit_many(new, conn=conn)
            fresh = [handle for handle in made if not handle.duplicate]
            if quota is not None and fresh:
                await one.run(quotas.charge(quota, [handle.id for handle in fresh]))
            await check_duplicates(one, who, made)
            change.is_recorded = bool(fresh)
            change.after = {
                "count": len(fresh),
                "job_types": sorted({handle.job_type for handle in fresh}),
                "ids": [str(handle.id) for handle in fresh],
            }
        return Json({"items": [submitted(handle) for handle in made]}, 202 if fresh else 200)

    return await within_quota(request, quota, lambda: guard.run(apply, lambda: client.wake(made)))


def submitted(handle: JobHandle) -> dict[str, Any]:
    """The outcome of one job of a batch or a flow."""
    return {
        "id": str(handle.id),
        "job_type": handle.job_type,
        "status": handle.status.value,
        "duplicate": handle.duplicate,
    }


def check_room(quota: Quota, jobs: Iterable[tuple[str, JobRequestFields]]) -> Statement[None]:
    """Refuse too many jobs, each with its workspace, before they are stored."""
    return quotas.check(
        quota,
        [
            quotas.RequestedJob(
                workspace,
                job.job_type,
                job.unique_key,
                may_be_duplicate=bool(job.unique_for) or job.unique_by is not None,
            )
            for workspace, job in jobs
        ],
    )


async def check_duplicates(db: Database, who: Caller, made: Iterable[JobHandle]) -> None:
    """Refuse a duplicate of a job that the caller may not read."""
    if who.access.allows_everywhere("jobs:read"):
        return
    for handle in made:
        job = await db.run(store.get(handle.id)) if handle.duplicate else None
        if job is not None:
            _own_or_readable(who, job, handle)


def _own_or_readable(who: Caller, job: Job, handle: JobHandle) -> Job:
    """The job; for an unreadable duplicate, the caller learns only that the key is taken."""
    if handle.duplicate and not covers(who.access.reach("jobs:read"), job):
        raise Refused("another job has this unique key")
    return job
