"""One verb on all jobs that match a filter; a dry run counts first.

Newest first, in batches by keyset, every job by the statement of the single verb and in a
transaction of its own: a run that was interrupted has done what it had done, and run again it goes
on, for jobs that are done match no longer. Jobs newer than the preview, or than the beginning where
there was none, are not touched.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
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
from laneway.domain.states import Status
from laneway.errors import InvalidInput, QuotaExceeded
from laneway.store import approvals, audit, quotas, workers
from laneway.store import jobs as store
from laneway.store.database import Database
from laneway.store.quotas import Quota
from laneway.store.statement import Statement

log = logging.getLogger("laneway.control")

BATCH: Final = 200
COUNT_BOUND: Final = 10_000
SAMPLE: Final = 5


_TOO_MUCH: Final = "more would wait than the grants allow"
_TOO_HIGH: Final = "its priority is higher than the grants allow"
_TOO_MANY_TYPES: Final = (
    "no worker has published its job type, and the grants allow no more of those"
)
_GONE: Final = "is no longer there"
_DUPLICATE: Final = "another job that has not ended holds its unique_key"


@dataclass(frozen=True, slots=True)
class Limits:
    """Whose retries are counted, and what its grants allow with each job."""

    principal_id: UUID
    bounds: Callable[[Job], Bounds]


async def preview(db: Database, order: BulkRequest, *, by: str) -> Preview:
    """Counts the jobs an order is for, up to a bound, and shows a few of the newest."""
    order.check(by)
    upto = await db.run(store.newest())
    matched, is_more = 0, False
    sample: list[Job] = []
    for wanted in order.parts:
        counted = await _count(db, wanted, upto, COUNT_BOUND - matched)
        matched, is_more = matched + counted.matched, is_more or counted.is_more
        if counted.matched and (room := SAMPLE - len(sample)):
            page = await db.run(store.listing(wanted, limit=room, before=upto + 1))
            sample += page.items
    return Preview(order.verb, matched, is_more, tuple(sample), upto)


async def _count(db: Database, wanted: JobFilter, upto: int, most: int) -> store.Counted:
    """How many jobs there are of one status, up to the most; how far it looks is bounded too."""
    found = await db.run(store.count(wanted, limit=most + 1, before=upto + 1))
    return store.Counted(min(found.matched, most), found.is_more or found.matched > most)


async def run(
    db: Database,
    order: BulkRequest,
    *,
    by: str,
    upto: int | None = None,
    limits: Limits | None = None,
) -> AsyncGenerator[BulkProgress]:
    """Does it; yields the tally after every batch, the same one each time.

    With the `upto` of a preview, only to jobs that were there then. The audit keeps the order when
    it begins, with how many jobs it is for, and not each of them. Jobs that are to wait again are
    refused and counted by the limits.
    """
    order.check(by)
    if upto is None:
        upto = await db.run(store.newest())
    elif type(upto) is not int or not 0 <= upto < 2**63 - 1:
        raise InvalidInput("upto", "must be what a preview says")
    tally = BulkProgress(order.verb, asked_to_stop=0 if order.verb is BulkVerb.CANCEL else None)
    act = _act(db, order, by, limits)
    matched, is_more = 0, False
    for wanted in order.parts:
        counted = await _count(db, wanted, upto, COUNT_BOUND - matched)
        matched, is_more = matched + counted.matched, is_more or counted.is_more
    await db.run(_order_act(order, by, upto, store.Counted(matched, is_more)))
    log.info("%s in bulk by %s: %s", order.verb, by, order.wanted)
    for wanted in order.parts:
        before = upto + 1
        while True:
            page = await db.run(store.matching(wanted, limit=BATCH, before=before))
            told = _Told()
            try:
                for job_id in page.ids:
                    refusal = await act(job_id, told)
                    if refusal is None:
                        tally.done += 1
                    else:
                        tally.refused[refusal] += 1
                if tally.asked_to_stop is not None:
                    tally.asked_to_stop += told.asked_to_stop
            finally:
                await told.tell(db)
            if page.ids:
                yield tally
            if page.next_cursor is None:
                break
            before = page.next_cursor
    log.info("%s in bulk by %s: %s done, %s refused", order.verb, by, tally.done,
             tally.refused.total())  # fmt: skip


_DONE: Final = {
    BulkVerb.CANCEL: "job.bulk_cancelled",
    BulkVerb.RETRY: "job.bulk_retried",
    BulkVerb.DELETE: "job.bulk_deleted",
    BulkVerb.REPRIORITIZE: "job.bulk_reprioritized",
    BulkVerb.APPROVE: "job.bulk_approved",
    BulkVerb.REJECT: "job.bulk_rejected",
}


def _order_act(order: BulkRequest, by: str, upto: int, counted: store.Counted) -> Statement[None]:
    after: dict[str, object] = {
        "filter": order.wanted.wishes,
        "upto": upto,
        "matched": counted.matched,
        "is_more": counted.is_more,
    }
    if order.reason is not None:
        after["reason"] = redact(order.reason)
    if order.priority is not None:
        after["priority"] = order.priority
    return audit.record(by, _DONE[order.verb], "job", workspace=order.wanted.workspace, after=after)


@dataclass(slots=True)
class _Told:
    """Whom a batch concerns; told once for all of it."""

    workers: set[UUID] = field(default_factory=set)
    job_types: set[str] = field(default_factory=set)
    asked_to_stop: int = 0

    async def tell(self, db: Database) -> None:
        for worker_id in self.workers:
            await notifications.ask_to_stop(db, worker_id)
        if self.job_types:
            await notifications.wake(db, self.job_types)


_Act = Callable[[UUID, _Told], Awaitable[str | None]]


def _act(db: Database, order: BulkRequest, by: str, limits: Limits | None) -> _Act:
    """The verb on one job: None when it was done, else why not."""
    reason, priority = order.reason, order.priority or 0

    async def cancel(job_id: UUID, told: _Told) -> str | None:
        met = await db.run(store.cancel(job_id, by, reason))
        if met.concerns is not None:
            told.workers.add(met.concerns)
        if met.found_in == Status.RUNNING:
            told.asked_to_stop += 1
        return _refusal(order.verb, met.found_in)

    async def retry(job_id: UUID, told: _Told) -> str | None:
        met = await _retry_within(db, job_id, limits)
        if isinstance(met, str):
            return met
        refusal = _refusal(order.verb, met.found_in)
        if refusal is None and met.concerns is not None:
            told.job_types.add(met.concerns)
        return refusal

    async def delete(job_id: UUID, told: _Told) -> str | None:
        if await db.run(store.delete(job_id)) is not None:
            return None
        job = await db.run(store.get(job_id))
        return _GONE if job is None else f"is {job.status}"

    async def reprioritize(job_id: UUID, told: _Told) -> str | None:
        return _refusal(order.verb, (await db.run(store.reprioritize(job_id, priority))).found_in)

    async def approve(job_id: UUID, told: _Told) -> str | None:
        met = await db.run(approvals.approve(job_id, by, reason, None))
        refusal = _refusal(order.verb, met.found_in) or _undecided(met.refusal)
        if refusal is None and met.job_type is not None:
            told.job_types.add(met.job_type)
        return refusal

    async def reject(job_id: UUID, told: _Told) -> str | None:
        met = await db.run(approvals.reject(job_id, by, reason or ""))
        return _refusal(order.verb, met.found_in) or _undecided(met.refusal)

    return {
        BulkVerb.CANCEL: cancel,
        BulkVerb.RETRY: retry,
        BulkVerb.DELETE: delete,
        BulkVerb.REPRIORITIZE: reprioritize,
        BulkVerb.APPROVE: approve,
        BulkVerb.REJECT: reject,
    }[order.verb]


async def _retry_within(
    db: Database, job_id: UUID, limits: Limits | None
) -> store.FoundState | str:
    """Lets a job wait again if the limits allow it; else says why not."""
    job = None if limits is None else await db.run(store.get(job_id))
    if limits is None or job is None:
        return await db.run(store.retry(job_id))
    bounds = limits.bounds(job)
    if await outranks(db, job, bounds):
        return _TOO_HIGH
    if not bounds.counts:
        return await db.run(store.retry(job_id))
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


async def outranks(db: Database, job: Job, bounds: Bounds) -> bool:
    """Whether a job has a higher priority than may be given, and not because of its job type.

    The priority that a worker published for the job type is nobody's to be refused.
    """
    if job.priority <= bounds.max_priority:
        return False
    known = (await db.run(workers.published([job.job_type]))).get(job.job_type)
    return known is None or known.priority != job.priority


async def _retry(db: Database, job: Job, quota: Quota) -> store.FoundState:
    job_id = job.id
    asked = quotas.RequestedJob(job.workspace, job.job_type, None)
    async with db.transaction() as transaction:
        if job.status in STATUSES[BulkVerb.RETRY]:
            await transaction.run(quotas.check(quota, [asked]))
        met = await transaction.run(store.retry(job_id))
        if _refusal(BulkVerb.RETRY, met.found_in) is None:
            await transaction.run(quotas.charge(quota, [job_id]))
        return met


def _undecided(refusal: str | None) -> str | None:
    return None if refusal is None else verb_rules.REFUSALS[refusal]


def _refusal(verb: BulkVerb, found_in: str | None) -> str | None:
    if found_in is None:
        return _GONE
    if found_in == "duplicate":
        return _DUPLICATE
    return None if found_in in STATUSES[verb] else f"is {found_in}"
