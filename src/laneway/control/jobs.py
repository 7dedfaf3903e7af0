"""Verbs on jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from laneway.control import notifications
from laneway.control.audit import audited
from laneway.domain import verb_rules
from laneway.domain.codec import json_time
from laneway.domain.counts import NOT_COUNTED, StateCount
from laneway.domain.filter import JobFilter
from laneway.domain.job import Attempt, Job, check_priority
from laneway.domain.job_id import MOST_ENDS, MOST_PREFIXES, IdMatches, IdPrefix, parse_id
from laneway.domain.overview import DEPTH_BOUND
from laneway.domain.page import Page
from laneway.domain.permissions import Reach
from laneway.domain.states import TERMINAL, Status
from laneway.errors import InvalidInput, NotFound, Refused
from laneway.observability.safe_logger import SafeLogger
from laneway.store import events, job_ids
from laneway.store import jobs as store
from laneway.store.database import Database, Runner

log = SafeLogger("laneway.control")

# Fields of a deleted job that the audit keeps; its payload and result are gone.
_KEPT_OF_DELETED: Final = (
    "job_type", "lane", "status", "priority", "attempt", "tags", "created_at", "created_by",
    "finished_at",
)  # fmt: skip


async def show(db: Database, job_id: UUID) -> Job:
    """One job with its newest attempts."""
    job = await _get(db, job_id)
    attempts = await db.run(store.get_attempts(job_id))
    return replace(job, attempts=tuple(attempts))


async def attempts(
    db: Database, job_id: UUID, *, limit: int = store.MAX_ATTEMPTS, cursor: str | None = None
) -> Page[Attempt]:
    """One page of the attempts of a job, newest first."""
    verb_rules.check_page(limit)
    before = verb_rules.position(cursor)
    found = await db.run(
        store.get_attempts(
            job_id, limit=limit, before=None if before is None else min(before, 2**31 - 1)
        )
    )
    found.reverse()
    return Page(found, str(found[-1].attempt) if len(found) == limit else None)


async def listing(
    db: Database,
    wanted: JobFilter,
    *,
    limit: int = 50,
    cursor: str | None = None,
    oldest_first: bool = False,
) -> Page[Job]:
    """One page of jobs, newest first; jobs that wait for an approval also oldest first.

    A long search stops before the page is full, with a cursor to continue from.
    """
    if oldest_first:
        found = await find(db, wanted, limit=limit, cursor=cursor, oldest_first=True)
        jobs = await read(db, wanted, found.items)
        return Page(jobs, found.next_cursor, found.looked_back_to)
    verb_rules.check_page(limit)
    wanted.check()
    page = await db.run(store.listing(wanted, limit=limit, before=verb_rules.position(cursor)))
    following = str(page.next_cursor) if page.next_cursor is not None else None
    return Page(page.items, following, page.looked_back_to)


async def find(
    db: Database,
    wanted: JobFilter,
    *,
    limit: int = 50,
    cursor: str | None = None,
    oldest_first: bool = False,
) -> Page[int]:
    """One page of a listing as job numbers, for `read`, which takes some at a time."""
    verb_rules.check_page(limit)
    wanted.check()
    place = verb_rules.position(cursor)
    if oldest_first and wanted.status is not Status.AWAITING_APPROVAL:
        raise InvalidInput("oldest_first", "is for status awaiting_approval only")
    found = await db.run(
        store.awaiting(wanted, limit=limit, after=place)
        if oldest_first
        else store.matching(wanted, limit=limit, before=place)
    )
    following = str(found.next_cursor) if found.next_cursor is not None else None
    return Page(found.numbers, following, found.looked_back_to)


async def read(
    db: Database, wanted: JobFilter, numbers: Sequence[int], *, values: bool = True
) -> list[Job]:
    """The jobs that `find` returned, in that order, without those that no longer match.

    Without `values` they have no payload, result and checkpoint.
    """
    there = await db.run(events.jobs(numbers, values=values))
    return [there[number] for number in numbers if _is_wanted(wanted, there.get(number))]


def _is_wanted(wanted: JobFilter, job: Job | None) -> bool:
    """Whether a job still matches by its fields that may change."""
    return (
        job is not None
        and wanted.status in (None, job.status)
        and wanted.lane in (None, job.lane)
        and (
            wanted.within is None
            or wanted.within.covers(owner=job.created_by, workspace=job.workspace, lane=job.lane)
        )
    )


async def find_ids(
    db: Database, prefixes: Sequence[str], *, within: Reach | None = None
) -> list[IdMatches]:
    """The jobs in reach (None: all) whose ids begin with each prefix, by the index of ids."""
    if len(prefixes) > MOST_PREFIXES:
        raise InvalidInput("prefix", f"give at most {MOST_PREFIXES} of them")
    parsed = [_prefix(each) for each in prefixes]
    if sum(bool(each.end) for each in parsed) > MOST_ENDS:
        raise InvalidInput("prefix", f"give at most {MOST_ENDS} with an end")
    return await db.run(job_ids.find(parsed, within=within))


def _prefix(text: str) -> IdPrefix:
    parsed = parse_id(text, "prefix")
    return parsed if isinstance(parsed, IdPrefix) else IdPrefix(parsed.hex)


async def counts(db: Database, wanted: JobFilter, *, bound: int = DEPTH_BOUND) -> list[StateCount]:
    """The number of jobs in each state, in the order of the life cycle, up to the bound."""
    wanted.check()
    for field in NOT_COUNTED:
        if getattr(wanted, field) is not None:
            raise InvalidInput(
                field,
                "cannot filter counts, because every job would be read: list the jobs instead",
            )
    return await db.run(store.count_states(wanted, bound=bound))


async def follow(db: Database, job_id: UUID, *, interval: float = 0.5) -> AsyncIterator[Job]:
    """Yield the job now and after every change, until it has ended."""
    last: Job | None = None
    while last is None or last.status not in TERMINAL:
        # A heartbeat moves `lease_until`, which does not count as a change.
        job = replace(await _get(db, job_id), lease_until=None)
        if job != last:
            yield job
        last = job
        if job.status not in TERMINAL:
            await asyncio.sleep(interval)


async def cancel(
    db: Database,
    job_id: UUID,
    *,
    by: str,
    reason: str | None = None,
    only: verb_rules.CancelOnly | None = None,
) -> Job:
    """Cancel a waiting job immediately; ask the worker of a running job to stop it.

    `only` refuses a job that is not waiting, or not running, at that moment.
    """
    verb_rules.check_actor(by, reason)
    async with audited(db, by, "job.cancelled", "job", str(job_id)) as change:
        answer = await change.run(store.cancel(job_id, by, reason, only))
        status = verb_rules.after_cancel(job_id, answer.found_in, answer.concerns, only)
        change.workspace = answer.workspace
        change.before, change.after = verb_rules.audited_cancel(answer.found_in, status, reason)
    if answer.concerns is not None:
        await notifications.notify_cancel(db, answer.concerns)
    log.info("job %s: cancel requested by %s", job_id, by)
    return await _get(db, job_id)


async def reprioritize(db: Database, job_id: UUID, priority: int, *, by: str) -> Job:
    """Change the priority of a waiting job."""
    verb_rules.check_actor(by)
    check_priority(priority)
    async with audited(db, by, "job.reprioritized", "job", str(job_id)) as change:
        job = await _get(change, job_id)
        answer = await change.run(store.reprioritize(job_id, priority))
        status = verb_rules.found_status(job_id, answer.found_in)
        if status is Status.RUNNING or status in TERMINAL:
            raise Refused(f"job {job_id} is {status}: only waiting jobs can be reprioritized")
        change.workspace = job.workspace
        change.before, change.after = {"priority": job.priority}, {"priority": priority}
    log.info("job %s: priority %s, by %s", job_id, priority, by)
    return await _get(db, job_id)


async def retry(db: Database, job_id: UUID, *, by: str) -> Job:
    """Queue a failed or cancelled job again, with a new retry budget."""
    verb_rules.check_actor(by)
    async with audited(db, by, "job.retried", "job", str(job_id)) as change:
        answer = await change.run(store.retry(job_id))
        if answer.found_in == "duplicate":
            raise Refused(f"job {job_id}: another job that has not ended holds its unique_key")
        status = verb_rules.found_status(job_id, answer.found_in)
        if status not in (Status.FAILED, Status.CANCELLED):
            raise Refused(f"job {job_id} is {status}: only failed and cancelled jobs are retried")
        job = await _get(change, job_id)
        change.workspace = job.workspace
        change.before, change.after = {"status": status}, {"status": job.status}
    # None: the job waits again. Its sub-jobs may be queued, of any type.
    await notifications.wake(db, None if answer.concerns is None else [answer.concerns])
    log.info("job %s: retried by %s", job_id, by)
    return await _get(db, job_id)


async def run_now(db: Database, job_id: UUID, *, by: str) -> Job:
    """Make a job due that waits for a time: delayed, snoozed, backing off or asleep."""
    verb_rules.check_actor(by)
    async with audited(db, by, "job.made_due", "job", str(job_id)) as change:
        answer = await change.run(store.run_now(job_id))
        verb_rules.check_made_due(job_id, answer.found_in, is_done=answer.due is not None)
        change.workspace = (await _get(change, job_id)).workspace
        change.before = {"run_at": answer.was_due and json_time(answer.was_due)}
        change.after = {"run_at": answer.due and json_time(answer.due)}
    await notifications.wake(db, [answer.job_type] if answer.job_type else ())
    log.info("job %s: made due by %s", job_id, by)
    return await _get(db, job_id)


async def delete(db: Database, job_id: UUID, *, by: str) -> None:
    """Delete a job that has ended, with its history."""
    verb_rules.check_actor(by)
    async with audited(db, by, "job.deleted", "job", str(job_id)) as change:
        job = await check_deletable(change, job_id)
        if await change.run(store.delete(job_id)) is None:
            raise Refused(f"job {job_id} {verb_rules.NEEDED}")
        change.workspace = job.workspace
        change.before = {name: getattr(job, name) for name in _KEPT_OF_DELETED}
    log.info("job %s: deleted by %s", job_id, by)


async def check_deletable(db: Runner, job_id: UUID) -> Job:
    """The job that `delete` would delete; Refused if it has not ended."""
    job = await _get(db, job_id)
    if job.status not in TERMINAL:
        raise Refused(f"job {job_id} is {job.status}: cancel it first")
    return job


async def _get(db: Runner, job_id: UUID) -> Job:
    job = await db.run(store.get(job_id))
    if job is None:
        raise NotFound(f"no job {job_id}")
    return job
