"""Verbs on flows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final
from uuid import UUID

from laneway.control import bulk, notifications
from laneway.control.bulk import PrincipalLimits
from laneway.domain import verb_rules
from laneway.domain.bulk import STATUSES, BulkVerb
from laneway.domain.flow import ChangedFlow, Flow, FlowFilter, FlowGraph, FlowJob
from laneway.domain.job import check_priority
from laneway.domain.page import Page
from laneway.domain.permissions import Reach
from laneway.errors import Refused
from laneway.observability.safe_logger import SafeLogger
from laneway.store import flow_changes, jobs
from laneway.store import flows as store
from laneway.store.database import Database, Runner
from laneway.store.jobs import FoundState
from laneway.store.locked_jobs import LOCKED, Patience

log = SafeLogger("laneway.control")

# Jobs of a graph on one page.
MOST_JOBS: Final = 1000


async def get(db: Runner, flow_id: UUID) -> Flow:
    """One flow with its counts."""
    return await flow_changes.find(db, flow_id)


async def graph(
    db: Database, flow_id: UUID, *, limit: int = MOST_JOBS, cursor: str | None = None
) -> FlowGraph:
    """A flow with one page of its jobs."""
    verb_rules.check_page(limit, MOST_JOBS)
    flow = await get(db, flow_id)
    page = await db.run(store.states(flow_id, limit=limit, after=verb_rules.position(cursor)))
    following = None if page.next_cursor is None else str(page.next_cursor)
    return FlowGraph(flow=flow, jobs=tuple(page.items), next_cursor=following)


async def listing(
    db: Database,
    wanted: FlowFilter | None = None,
    *,
    within: Reach | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[Flow]:
    """One page of flows, newest first; `within`: those in reach."""
    verb_rules.check_page(limit)
    asked = (wanted or FlowFilter()).check()
    before = verb_rules.position(cursor)
    found = await db.run(store.listing(asked, within=within, limit=limit, before=before))
    following = None if found.next_cursor is None else str(found.next_cursor)
    return Page(found.items, following)


async def follow(db: Database, flow_id: UUID, *, interval: float = 0.5) -> AsyncIterator[Flow]:
    """Yield the flow now and after every change, until all its jobs have ended."""
    last: Flow | None = None
    while last is None or not last.is_over:
        flow = await get(db, flow_id)
        if flow != last:
            yield flow
        last = flow
        if not flow.is_over:
            await asyncio.sleep(interval)


async def cancel(db: Database, flow_id: UUID, *, by: str, reason: str | None = None) -> ChangedFlow:
    """Cancel all jobs of a flow that have not ended; running ones are asked to stop."""
    verb_rules.check_actor(by, reason)
    done = await flow_changes.cancel(db, flow_id, by, reason)
    for worker_id in done.workers:
        await notifications.notify_cancel(db, worker_id)
    log.info("flow %s: %s jobs cancelled by %s", flow_id, done.changed, by)
    done.check(flow_id)
    return ChangedFlow(await get(db, flow_id), done.changed)


async def retry(
    db: Database, flow_id: UUID, *, by: str, limits: PrincipalLimits | None = None
) -> ChangedFlow:
    """Queue the failed and cancelled jobs of a flow again; `limits` apply to each of them."""
    verb_rules.check_actor(by)
    if limits is None:
        done = await flow_changes.retry(db, flow_id, by)
    else:
        done = await _retry_within(db, flow_id, by, limits)
    if done.wakes:
        await notifications.wake(db, done.wakes)
    log.info("flow %s: %s jobs retried by %s", flow_id, done.changed, by)
    done.check(flow_id)
    return ChangedFlow(await get(db, flow_id), done.changed)


async def reprioritize(db: Database, flow_id: UUID, priority: int, *, by: str) -> ChangedFlow:
    """Change the priority of the jobs of a flow that have not started."""
    verb_rules.check_actor(by)
    check_priority(priority)
    changed = await flow_changes.reprioritize(db, flow_id, by, priority)
    log.info("flow %s: priority %s for %s jobs, by %s", flow_id, priority, changed, by)
    return ChangedFlow(await get(db, flow_id), changed)


async def _retry_within(
    db: Database, flow_id: UUID, by: str, limits: PrincipalLimits
) -> flow_changes.RetriedFlow:
    """Retry job by job; the first one that the limits refuse, or that stays locked, ends it."""
    async with db.transaction() as transaction:
        await flow_changes.record(transaction, by, "flow.retried", flow_id)
    changed, wakes = 0, set[str]()
    after: int | None = 0
    while after is not None:
        page = await db.run(store.states(flow_id, limit=MOST_JOBS, after=after))
        for job in page.items:
            if job.status not in STATUSES[BulkVerb.RETRY]:
                continue
            found = await _retry_job_within(db, job, limits)
            if found == LOCKED:
                return flow_changes.RetriedFlow(changed, frozenset(wakes), is_cut=True)
            if isinstance(found, str):
                raise Refused(f"job {job.id}: {found}; {changed} jobs were queued again")
            if found is not None:
                changed += found.found_in in STATUSES[BulkVerb.RETRY]
                wakes |= {found.concerns} - {None}
        after = page.next_cursor
    return flow_changes.RetriedFlow(changed, frozenset(wakes))


async def _retry_job_within(
    db: Database, job: FlowJob, limits: PrincipalLimits
) -> FoundState | str | None:
    """Retry one job of a flow; return why not if it is refused, None if it is left alone."""
    may_end_with_parent = bool(job.after) and job.after_failure == "cancel"
    may_be_left = job.owner is not None or may_end_with_parent
    patience = Patience()
    while True:
        # In each round: a parent that was running may have failed.
        if may_be_left and await db.run(store.is_left_alone(job.id)):
            return None
        found = await bulk.retry_within(db, job.id, limits)
        if found == LOCKED and await patience.pause():
            continue
        is_retried = isinstance(found, FoundState) and found.found_in in STATUSES[BulkVerb.RETRY]
        if is_retried and may_end_with_parent and await db.run(store.is_left_alone(job.id)):
            # A parent failed since: the job would wait for it until another retry.
            reason = "a job that it comes after has failed"
            await db.run(jobs.cancel(job.id, "laneway", reason, only="waiting"))
            return None
        return found
