"""One verb on all jobs that match a filter; a dry run counts first.

A run goes newest first, in batches by keyset; a retry goes oldest first, so that each job waits for
those that it comes after. Every job has its own transaction, with the statement of the single verb.
A locked job is tried again for a while, and then counted as refused.
An interrupted run can be repeated and continues, because finished jobs no longer match. Jobs newer
than the preview, or than the start of the run, are left alone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from laneway.control import notifications
from laneway.domain import verb_rules
from laneway.domain.bounds import Bounds
from laneway.domain.bulk import STATUSES
from laneway.domain.bulk import BulkProgress as BulkProgress
from laneway.domain.bulk import BulkRequest as BulkRequest
from laneway.domain.bulk import BulkVerb as BulkVerb
from laneway.domain.bulk import Preview as Preview
from laneway.domain.filter import JobFilter
from laneway.domain.job import Job
from laneway.domain.redaction import redact
from laneway.domain.states import TERMINAL, Status
from laneway.errors import InvalidInput, QuotaExceeded
from laneway.observability.safe_logger import SafeLogger
from laneway.store import approvals, audit, quotas, workers
from laneway.store import jobs as store
from laneway.store.aborted_statements import StatementTimeout
from laneway.store.database import Database
from laneway.store.locked_jobs import LOCK_MS, LOCKED, Patience, run_unless_locked
from laneway.store.quotas import Quota
from laneway.store.statement import Statement

log = SafeLogger("laneway.control")

BATCH: Final = 200
COUNT_BOUND: Final = 10_000
SAMPLE: Final = 5


_TOO_MUCH: Final = "more would wait than the grants allow"
_TOO_HIGH: Final = "its priority is higher than the grants allow"
_TOO_MANY_TYPES: Final = (
    "no worker has published its job type, and the grants allow no more of those"
)
_GONE: Final = "no longer exists"
_DUE: Final = "is due already"
_DUPLICATE: Final = "another job that has not ended holds its unique_key"


@dataclass(frozen=True, slots=True)
class PrincipalLimits:
    """The principal whose retries are counted, and the bounds of its grants for each job."""

    principal_id: UUID
    bounds: Callable[[Job], Bounds]


async def preview(db: Database, request: BulkRequest, *, by: str) -> Preview:
    """Count the jobs of a request, up to a bound, and show a few of the newest."""
    request.check(by)
    upto = await db.run(store.newest())
    matched, is_more = 0, False
    sample: list[Job] = []
    for wanted in request.parts:
        counted = await _count(db, wanted, upto, COUNT_BOUND - matched)
        matched, is_more = matched + counted.matched, is_more or counted.is_more
        if counted.matched and (room := SAMPLE - len(sample)):
            page = await db.run(store.listing(wanted, limit=room, before=upto + 1))
            sample += page.items
    return Preview(request.verb, matched, is_more, tuple(sample), upto)


async def _count(db: Database, wanted: JobFilter, upto: int, most: int) -> store.Counted:
    """Count jobs of one status, up to `most`; the number of rows read is bounded too."""
    found = await db.run(store.count(wanted, limit=most + 1, before=upto + 1))
    return store.Counted(min(found.matched, most), found.is_more or found.matched > most)


async def run(
    db: Database,
    request: BulkRequest,
    *,
    by: str,
    upto: int | None = None,
    limits: PrincipalLimits | None = None,
) -> AsyncGenerator[BulkProgress]:
    """Run a request; yield its progress after every batch, the same object each time.

    With the `upto` of a preview, newer jobs are left alone. The audit gets one entry at the start,
    with the number of jobs, and none for each job. `limits` apply to jobs that are queued again.
    """
    request.check(by)
    if upto is None:
        upto = await db.run(store.newest())
    elif type(upto) is not int or not 0 <= upto < 2**63 - 1:
        raise InvalidInput("upto", "must be the upto of a preview")
    progress = BulkProgress(
        request.verb, asked_to_stop=0 if request.verb is BulkVerb.CANCEL else None
    )
    action = _action(db, request, by, limits)
    matched, is_more = 0, False
    for wanted in request.parts:
        counted = await _count(db, wanted, upto, COUNT_BOUND - matched)
        matched, is_more = matched + counted.matched, is_more or counted.is_more
    await db.run(_audit_entry(request, by, upto, store.Counted(matched, is_more)))
    log.info("%s in bulk by %s: %s", request.verb, by, request.wanted.describe())
    for wanted in request.parts:
        found = _find(db, wanted, upto)
        if request.verb is BulkVerb.RETRY:
            found = _reverse(found)
        async with aclosing(found) as batches:
            async for ids in batches:
                notices, patience = _Notices(), Patience()
                try:
                    for job_id in ids:
                        refusal = await action(job_id, notices)
                        # A retry of those after it must come later.
                        while refusal == LOCKED and await patience.pause():
                            refusal = await action(job_id, notices)
                        if refusal is None:
                            progress.done += 1
                        else:
                            progress.refused[refusal] += 1
                    if progress.asked_to_stop is not None:
                        progress.asked_to_stop += notices.asked_to_stop
                finally:
                    await notices.send(db)
                if ids:
                    yield progress
    log.info("%s in bulk by %s: %s done, %s refused", request.verb, by, progress.done,
             progress.refused.total())  # fmt: skip


async def _find(db: Database, wanted: JobFilter, upto: int) -> AsyncGenerator[list[UUID]]:
    """The ids of matching jobs in batches, newest first."""
    before: int | None = upto + 1
    while before is not None:
        page = await db.run(store.matching(wanted, limit=BATCH, before=before))
        yield page.ids
        before = page.next_cursor


async def _reverse(batches: AsyncGenerator[list[UUID]]) -> AsyncGenerator[list[UUID]]:
    """The same batches, oldest first."""
    # As bytes: a million ids take 16 MB.
    found = [b"".join(one.bytes for one in ids) async for ids in batches]
    while found:
        ids = found.pop()
        yield [UUID(bytes=ids[n - 16 : n]) for n in range(len(ids), 0, -16)]


_DONE: Final = {
    BulkVerb.CANCEL: "job.bulk_cancelled",
    BulkVerb.RETRY: "job.bulk_retried",
    BulkVerb.DELETE: "job.bulk_deleted",
    BulkVerb.REPRIORITIZE: "job.bulk_reprioritized",
    BulkVerb.APPROVE: "job.bulk_approved",
    BulkVerb.REJECT: "job.bulk_rejected",
    BulkVerb.RUN_NOW: "job.bulk_made_due",
}


def _audit_entry(
    request: BulkRequest, by: str, upto: int, counted: store.Counted
) -> Statement[None]:
    after: dict[str, object] = {
        "filter": request.wanted.conditions,
        "upto": upto,
        "matched": counted.matched,
        "is_more": counted.is_more,
    }
    if request.reason is not None:
        after["reason"] = redact(request.reason)
    if request.priority is not None:
        after["priority"] = request.priority
    return audit.record(
        by, _DONE[request.verb], "job", workspace=request.wanted.workspace, after=after
    )


@dataclass(slots=True)
class _Notices:
    """Workers and job types to notify, once for a whole batch."""

    workers: set[UUID] = field(default_factory=set)
    job_types: set[str] = field(default_factory=set)
    asked_to_stop: int = 0

    async def send(self, db: Database) -> None:
        for worker_id in self.workers:
            await notifications.notify_cancel(db, worker_id)
        if self.job_types:
            await notifications.wake(db, self.job_types)


_Action = Callable[[UUID, _Notices], Awaitable[str | None]]


def _action(db: Database, request: BulkRequest, by: str, limits: PrincipalLimits | None) -> _Action:
    """The verb on one job; it returns None if done, else the reason why not."""
    reason, priority = request.reason, request.priority or 0

    async def cancel(job_id: UUID, notices: _Notices) -> str | None:
        found = await db.run(store.cancel(job_id, by, reason))
        if found.concerns is not None:
            notices.workers.add(found.concerns)
        if found.found_in == Status.RUNNING:
            notices.asked_to_stop += 1
        return _refusal(request.verb, found.found_in)

    async def retry(job_id: UUID, notices: _Notices) -> str | None:
        found = await retry_within(db, job_id, limits)
        if isinstance(found, str):
            return found
        refusal = _refusal(request.verb, found.found_in)
        if refusal is None and found.concerns is not None:
            notices.job_types.add(found.concerns)
        return refusal

    async def delete(job_id: UUID, notices: _Notices) -> str | None:
        if await db.run(store.delete(job_id)) is not None:
            return None
        job = await db.run(store.get(job_id))
        if job is None:
            return _GONE
        return verb_rules.NEEDED if job.status in TERMINAL else f"is {job.status}"

    async def reprioritize(job_id: UUID, notices: _Notices) -> str | None:
        try:
            found = await db.run(store.reprioritize(job_id, priority, lock_ms=LOCK_MS))
        except StatementTimeout:
            return LOCKED
        return _refusal(request.verb, found.found_in)

    async def approve(job_id: UUID, notices: _Notices) -> str | None:
        found = await db.run(approvals.approve(job_id, by, reason, None))
        refusal = _refusal(request.verb, found.found_in) or _undecided(found.refusal)
        if refusal is None and found.job_type is not None:
            notices.job_types.add(found.job_type)
        return refusal

    async def reject(job_id: UUID, notices: _Notices) -> str | None:
        found = await db.run(approvals.reject(job_id, by, reason or ""))
        return _refusal(request.verb, found.found_in) or _undecided(found.refusal)

    async def run_now(job_id: UUID, notices: _Notices) -> str | None:
        found = await db.run(store.run_now(job_id))
        if found.due is None and found.found_in == Status.WAITING:
            return "waits for no time"
        if found.due is not None and found.job_type is not None:
            notices.job_types.add(found.job_type)
        return _refusal(request.verb, found.found_in)

    return {
        BulkVerb.CANCEL: cancel,
        BulkVerb.RETRY: retry,
        BulkVerb.DELETE: delete,
        BulkVerb.REPRIORITIZE: reprioritize,
        BulkVerb.APPROVE: approve,
        BulkVerb.REJECT: reject,
        BulkVerb.RUN_NOW: run_now,
    }[request.verb]


async def retry_within(
    db: Database, job_id: UUID, limits: PrincipalLimits | None
) -> store.FoundState | str:
    """Queue a job again if it is not locked and the limits allow it; else return why not."""
    try:
        return await _retry_unlocked(db, job_id, limits)
    except StatementTimeout:
        return LOCKED


async def _retry_unlocked(
    db: Database, job_id: UUID, limits: PrincipalLimits | None
) -> store.FoundState | str:
    job = None if limits is None else await db.run(store.get(job_id))
    if limits is None or job is None:
        return await run_unless_locked(db, store.retry(job_id, lock_ms=LOCK_MS))
    bounds = limits.bounds(job)
    if await exceeds_priority_bound(db, job, bounds):
        return _TOO_HIGH
    if not bounds.needs_counting:
        return await run_unless_locked(db, store.retry(job_id, lock_ms=LOCK_MS))
    quota = Quota(limits.principal_id, bounds)
    try:
        try:
            return await _retry(db, job, quota)
        except QuotaExceeded:
            if not await db.run(quotas.sweep(quota.principal_id)):
                return _TOO_MUCH
            return await _retry(db, job, quota)
    except QuotaExceeded:
        return _TOO_MUCH
    except InvalidInput:
        return _TOO_MANY_TYPES


async def exceeds_priority_bound(db: Database, job: Job, bounds: Bounds) -> bool:
    """Whether a job has a higher priority than the bounds allow.

    The priority that a worker published for its job type is always allowed.
    """
    if job.priority <= bounds.max_priority:
        return False
    known = (await db.run(workers.published([job.job_type]))).get(job.job_type)
    return known is None or known.priority != job.priority


async def _retry(db: Database, job: Job, quota: Quota) -> store.FoundState:
    requested = quotas.RequestedJob(job.workspace, job.job_type, None)
    # In a joined transaction a savepoint, so that a refusal does not abort it.
    async with db.joined() as transaction:
        if job.status in STATUSES[BulkVerb.RETRY]:
            await transaction.run(quotas.check(quota, [requested]))
        found = await transaction.run(store.retry(job.id, lock_ms=LOCK_MS))
        if _refusal(BulkVerb.RETRY, found.found_in) is None:
            await transaction.run(quotas.charge(quota, [job.id]))
        return found


def _undecided(refusal: str | None) -> str | None:
    return None if refusal is None else verb_rules.REFUSALS[refusal]


def _refusal(verb: BulkVerb, found_in: str | None) -> str | None:
    if found_in is None:
        return _GONE
    if found_in == "due":
        return _DUE
    if found_in == "duplicate":
        return _DUPLICATE
    if found_in == "busy":
        return LOCKED
    return None if found_in in STATUSES[verb] else f"is {found_in}"
