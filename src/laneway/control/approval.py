"""Approval and rejection of jobs."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from laneway.control import jobs, notifications
from laneway.control.audit import audited
from laneway.domain import verb_rules
from laneway.domain.filter import JobFilter
from laneway.domain.job import Job
from laneway.domain.page import Page
from laneway.domain.review import JobEdges, Review
from laneway.domain.states import Status
from laneway.errors import MissingRight, NotFound
from laneway.observability.safe_logger import SafeLogger
from laneway.store import approvals as store
from laneway.store import flows, handler_waits, steps
from laneway.store.database import Database

log = SafeLogger("laneway.control")


async def pending(
    db: Database, wanted: JobFilter | None = None, *, limit: int = 50, cursor: str | None = None
) -> Page[Job]:
    """One page of the jobs that wait for an approval, newest first, with their cost."""
    asked = replace(wanted or JobFilter(), status=Status.AWAITING_APPROVAL)
    return await jobs.listing(db, asked, limit=limit, cursor=cursor)


async def review(db: Database, job_id: UUID) -> Review:
    """One job with its attempts and decisions."""
    # The seal first: if the job changes before it is read, approval by this seal is refused.
    found = await db.run(store.sealed(job_id))
    if found is None:
        raise NotFound(f"no job {job_id}")
    decided = await db.run(store.decisions(job_id))
    job = await jobs.show(db, job_id)
    done = await db.run(steps.listing(job_id))
    try:
        edges = await db.run(flows.edges(job_id))
        waits = await db.run(handler_waits.listing(job_id))
    except MissingRight:
        # With the grants of an earlier version, the rest of the job is shown as before.
        edges, waits = JobEdges(), []
    return Review(
        job,
        found.seal,
        found.two_person,
        tuple(decided),
        found.traceparent,
        tuple(done),
        tuple(waits),
        **edges._asdict(),
    )


async def approve(
    db: Database, job_id: UUID, *, by: str, comment: str | None = None, seal: str | None = None
) -> Job:
    """Approve a job; with the seal of a review, only if it has not changed since."""
    verb_rules.check_decision(by, comment)
    async with audited(db, by, "job.approved", "job", str(job_id)) as change:
        answer = await change.run(store.approve(job_id, by, comment, seal))
        verb_rules.after_decision(job_id, answer.found_in, answer.refusal, "approve")
        change.workspace = answer.workspace
        change.before, change.after = verb_rules.audited_decision(Status.APPROVED, comment)
    await notifications.wake(db, [str(answer.job_type)])
    log.info("job %s: approved by %s", job_id, by)
    return await jobs.show(db, job_id)


async def reject(db: Database, job_id: UUID, *, by: str, reason: str) -> Job:
    """Reject a job that waits for an approval: it is cancelled."""
    verb_rules.check_rejection(by, reason)
    async with audited(db, by, "job.rejected", "job", str(job_id)) as change:
        answer = await change.run(store.reject(job_id, by, reason))
        verb_rules.after_decision(job_id, answer.found_in, answer.refusal, "reject")
        change.workspace = answer.workspace
        change.before, change.after = verb_rules.audited_decision(Status.CANCELLED, reason)
    log.info("job %s: rejected by %s", job_id, by)
    return await jobs.show(db, job_id)
