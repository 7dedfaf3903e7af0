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

from laneway.control import signals
from laneway.domain import operator
from laneway.domain.bulk import STATUSES
from laneway.domain.bulk import Order as Order
from laneway.domain.bulk import Preview as Preview
from laneway.domain.bulk import Tally as Tally
from laneway.domain.bulk import Verb as Verb
from laneway.domain.filter import JobFilter
from laneway.domain.job import Job
from laneway.domain.redaction import redact
from laneway.errors import InvalidInput, QuotaExceeded
from laneway.store import approvals, audit, quotas
from laneway.store import jobs as store
from laneway.store.database import Database
from laneway.store.quotas import Quota
from laneway.store.statement import Statement

log = logging.getLogger("laneway.control")

BATCH: Final = 200
COUNT_BOUND: Final = 10_000
SAMPLE: Final = 5


_TOO_MUCH: Final = "more would wait than the grants allow"
_GONE: Final = "is no longer there"
_DUPLICATE: Final = "another job that has not ended holds its unique_key"


async def preview(db: Database, order: Order, *, by: str) -> Preview:
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
    order: Order,
    *,
    by: str,
    upto: int | None = None,
    quota: Quota | None = None,
) -> AsyncGenerator[Tally]:
    """Does it; yields the tally after every batch, the same one each time.

    With the `upto` of a preview, only to jobs that were there then. The audit keeps the order when
    it begins, with how many jobs it is for, and not each of them. Jobs that wait again are counted
    against the quota.
    """
    order.check(by)
    if upto is None:
        upto = await db.run(store.newest())
    elif type(upto) is not int or not 0 <= upto < 2**63 - 1:
        raise InvalidInput("upto", "must be what a preview says")
    tally = Tally(order.verb)
    act = _act(db, order, by, quota)
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
    Verb.CANCEL: "job.bulk_cancelled",
    Verb.RETRY: "job.bulk_retried",
    Verb.DELETE: "job.bulk_deleted",
    Verb.REPRIORITIZE: "job.bulk_reprioritized",
    Verb.APPROVE: "job.bulk_approved",
    Verb.REJECT: "job.bulk_rejected",
}


def _order_act(order: Order, by: str, upto: int, counted: store.Counted) -> Statement[None]:
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

    async def tell(self, db: Database) -> None:
        for worker_id in self.workers:
            await signals.ask_to_stop(db, worker_id)
        if self.job_types:
            await signals.wake(db, self.job_types)


_Act = Callable[[UUID, _Told], Awaitable[str | None]]


def _act(db: Database, order: Order, by: str, quota: Quota | None) -> _Act:
    """The verb on one job: None when it was done, else why not."""
    reason, priority = order.reason, order.priority or 0

    async def cancel(job_id: UUID, told: _Told) -> str | None:
        met = await db.run(store.cancel(job_id, by, reason))
        if met.concerns is not None:
            told.workers.add(met.concerns)
        return _refusal(order.verb, met.found_in)

    async def retry(job_id: UUID, told: _Told) -> str | None:
        try:
            met = await _retry(db, job_id, quota)
        except QuotaExceeded:
            if quota is None or not await db.run(quotas.sweep(quota.principal_id)):
                return _TOO_MUCH
            met = await _retry(db, job_id, quota)
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
        Verb.CANCEL: cancel,
        Verb.RETRY: retry,
        Verb.DELETE: delete,
        Verb.REPRIORITIZE: reprioritize,
        Verb.APPROVE: approve,
        Verb.REJECT: reject,
    }[order.verb]


async def _retry(db: Database, job_id: UUID, quota: Quota | None) -> store.Met:
    if quota is None:
        return await db.run(store.retry(job_id))
    async with db.transaction() as transaction:
        met = await transaction.run(store.retry(job_id))
        if _refusal(Verb.RETRY, met.found_in) is None:
            await transaction.run(quotas.charge(quota, [job_id]))
        return met


def _undecided(refusal: str | None) -> str | None:
    return None if refusal is None else operator.REFUSALS[refusal]


def _refusal(verb: Verb, found_in: str | None) -> str | None:
    if found_in is None:
        return _GONE
    if found_in == "duplicate":
        return _DUPLICATE
    return None if found_in in STATUSES[verb] else f"is {found_in}"
