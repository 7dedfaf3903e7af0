"""The methods of commands, done by a server."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from laneway.cli.backends.operations import OperationBackend, R, T
from laneway.domain.bulk import BulkProgress, BulkRequest, Preview
from laneway.domain.change import Change
from laneway.domain.counts import StateCount
from laneway.domain.explanation import Explanation
from laneway.domain.filter import JobFilter
from laneway.domain.freeze import Freeze
from laneway.domain.job import Attempt, Job, check_priority
from laneway.domain.job_id import IdMatches
from laneway.domain.limit import Limit, Tuned, validate_limit_change
from laneway.domain.overview import Overview, WorkerRow
from laneway.domain.page import Page
from laneway.domain.review import Review
from laneway.domain.schedule import Schedule, ScheduleSettings, validate_schedule_change
from laneway.domain.states import TERMINAL
from laneway.domain.verb_rules import check_page, position
from laneway.errors import Forbidden, InvalidInput, LanewayError, NotFound, Refused, ServerError
from laneway.http import AsyncClient
from laneway.http.declared import call_for, listing_for
from laneway.operations.lanes import list_lanes
from laneway.operations.operation import Invocation

# As long as the server lets one request wait.
_FREEZE_S: Final = 10.0
_FIRST_LOOK_S: Final = 0.05
_LONGEST_LOOK_S: Final = 1.0


class ServerBackend(OperationBackend):
    """Acts as the owner of the client's token."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def call(self, asked: Invocation[R]) -> R:
        return await self._client.perform(call_for(asked))

    async def page(self, asked: Invocation[Page[T]], limit: int, cursor: str | None) -> Page[T]:
        check_page(limit)
        return await self._client.perform(listing_for(asked).page(limit, cursor))

    # -- jobs ---------------------------------------------------------------------------------

    async def submit(self, job_type: str, payload: object, **options: Any) -> Job:
        made = await self._client.submit(job_type, payload, **options)
        found = await self._client.get_job(made.id) if made.duplicate else None
        return made if found is None else replace(found, duplicate=True)

    async def find_unpublished(self, job: Job) -> str | None:
        """None if a worker has published the job's type; else `; did you mean …?`, or empty."""
        try:
            explained = await self._client.explain_job(job.id)
        except (Forbidden, NotFound):
            return None  # this caller may not know
        for reason in explained.reasons:
            if reason.code == "type_unpublished":
                _, mark, near = reason.message.partition("; did you mean ")
                return mark + near
        return None

    async def list_jobs(self, wanted: JobFilter, *, limit: int, cursor: str | None) -> Page[Job]:
        check_page(limit)
        position(cursor)
        return await self._client.list_jobs(wanted).page(limit=limit, cursor=cursor)

    async def find_ids(self, prefixes: Sequence[str]) -> list[IdMatches]:
        try:
            return await self._client.find_job_ids(prefixes)
        except (InvalidInput, NotFound):
            # An older server reads the path as the id of a job.
            raise Refused("this server does not find jobs by a prefix: give the full id") from None

    async def count_jobs(self, wanted: JobFilter) -> list[StateCount]:
        return await self._client.count_jobs(wanted)

    async def review(self, job_id: UUID) -> Review:
        return await self._client.review_job(job_id)

    async def attempts(self, job_id: UUID, *, limit: int, cursor: str | None) -> Page[Attempt]:
        check_page(limit)
        position(cursor)
        return await self._client.list_attempts(job_id).page(limit=limit, cursor=cursor)

    async def explain(self, job_id: UUID) -> Explanation:
        return await self._client.explain_job(job_id)

    async def follow(self, job_id: UUID, interval: float) -> AsyncIterator[Job]:
        """The job now and after every change, as the server streams them."""
        last: Job | None = None
        async for event in self._client.watch(job_id):
            if event.job is None:
                continue
            # A heartbeat moves `lease_until`; the job stays the same.
            job = replace(event.job, lease_until=None)
            if event.is_last:
                job = await self._with_traceback(job)
            if job != last:
                yield job
            last = job

    async def _with_traceback(self, job: Job) -> Job:
        """The job with its traceback, which events leave out, unless it has changed since."""
        if job.error is None:
            return job
        with suppress(NotFound):
            now = await self._client.get_job(job.id)
            if (now.status, now.attempt) == (job.status, job.attempt):
                return replace(job, error=now.error)
        return job

    async def approve(self, job_id: UUID, comment: str | None, seal: str | None) -> Job:
        await self._client.approve_job(job_id, comment, seal)
        return await self._client.get_job(job_id)

    async def reject(self, job_id: UUID, reason: str) -> Job:
        await self._client.reject_job(job_id, reason)
        return await self._client.get_job(job_id)

    async def cancel(self, job_id: UUID, reason: str | None) -> Job:
        return await self._client.cancel_job(job_id, reason)

    async def retry(self, job_id: UUID) -> Job:
        return await self._client.retry_job(job_id)

    async def run_now(self, job_id: UUID) -> Job:
        return await self._client.run_job_now(job_id)

    async def reprioritize(self, job_id: UUID, priority: int) -> Job:
        check_priority(priority)
        await self._client.reprioritize_job(job_id, priority)
        return replace(await self._client.get_job(job_id), attempts=())

    async def check_deletable(self, job_id: UUID) -> Job:
        """The job `delete` would delete; the server would cancel one that waits."""
        job = await self._client.get_job(job_id)
        if job.status not in TERMINAL:
            raise Refused(f"job {job_id} is {job.status}: cancel it first")
        return replace(job, attempts=())

    async def delete(self, job_id: UUID) -> None:
        if await self._client.delete_job(job_id) is not None:
            # Retried since it was looked at: the server cancels what waits.
            raise Refused(f"job {job_id} was queued again meanwhile: it was cancelled, not deleted")

    async def preview(self, order: BulkRequest) -> Preview:
        order.check("nobody")
        found = await self._client.preview_bulk(order)
        sample = [await self._seen(job_id) for job_id in found.sample]
        known = tuple(job for job in sample if job is not None)
        return Preview(found.verb, found.matched, found.is_more, known, found.upto)

    async def _seen(self, job_id: UUID) -> Job | None:
        try:
            return await self._client.get_job(job_id)
        except (Forbidden, NotFound):
            return None

    async def run_bulk(self, order: BulkRequest, upto: int) -> AsyncIterator[BulkProgress]:
        """The server does it; yields what has come of it so far, now and then."""
        run = await self._client.start_bulk(order, upto=upto)
        pause = _FIRST_LOOK_S
        while not run.is_over:
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_LOOK_S)
            run = await self._client.get_bulk(run.id)
            yield BulkProgress(run.verb, run.done, Counter(run.refused))
        if run.state != "done":
            raise ServerError(
                f"the server's bulk run {run.id} is {run.state}: run the command again"
            )

    # -- lanes and workers --------------------------------------------------------------------

    async def freeze(
        self, names: Sequence[str] | None, *, deadline: float, or_thaw: bool
    ) -> Freeze:
        """As often as the server must be asked to wait longer."""
        began = time.monotonic()
        ours = await self._not_yet_frozen(names) if or_thaw else []
        try:
            while True:
                left = max(0.0, deadline - (time.monotonic() - began))
                seen = await self._client.freeze_lanes(names, deadline=min(left, _FREEZE_S))
                waited = time.monotonic() - began
                # What was frozen first is waited for; all that are enabled are none by now.
                names = [each.lane for each in seen.lanes]
                if seen.is_quiet or waited >= deadline:
                    break
        except BaseException:
            # However it ends: who says --or-thaw must not find lanes drained.
            if ours:
                with suppress(LanewayError):
                    await self._client.thaw_lanes(ours)
            raise
        if not seen.is_quiet and ours:
            await self._client.thaw_lanes(ours)
        if not or_thaw or seen.is_quiet:
            return Freeze(seen.lanes, waited)
        others = tuple(each.lane for each in seen.lanes if each.lane not in ours)
        return Freeze(seen.lanes, waited, is_thawed=bool(ours), left_frozen=others)

    async def _not_yet_frozen(self, names: Sequence[str] | None) -> list[str]:
        """The lanes that this freeze would freeze: what another one holds is not ours to thaw."""
        return [
            each.lane.name
            for each in await self.items(list_lanes())
            if (names is None or each.lane.name in names)
            and (each.lane.enabled or (names is not None and each.frozen_by is None))
        ]

    async def drain_worker(self, worker_id: UUID) -> WorkerRow:
        return await self._client.drain_worker(worker_id)

    async def resume_worker(self, worker_id: UUID) -> WorkerRow:
        return await self._client.resume_worker(worker_id)

    async def overview(self, active_limit: int = 1000) -> Overview:
        seen = await self._client.read_status()
        return replace(seen, active=seen.active[:active_limit], oldest_transaction=None)

    async def forget_publisher(self, application: str, job_type: str | None) -> list[str]:
        return await self._client.forget_publisher(application, job_type=job_type)

    # -- limits, schedules and their history --------------------------------------------------

    async def tune_limit(self, name: str, change: Mapping[str, object]) -> Tuned:
        checked: dict[str, Any] = validate_limit_change(change)
        if not checked:
            raise InvalidInput("limit", "give at least one setting to change")
        try:
            now = (await self._client.get_limit(name)).limit
        except NotFound:
            now = Limit(name)
        return await self._client.put_limit(replace(now, **checked))

    async def put_schedule(self, name: str, change: ScheduleSettings) -> Schedule:
        try:
            await self._client.get_schedule(name)
        except NotFound:
            validate_schedule_change({"name": name, **change}, new=True)
            return await self._client.create_schedule(name, change)
        if not validate_schedule_change(change):
            raise InvalidInput("schedule", "give at least one setting to change")
        return await self._client.change_schedule(name, change)

    async def history(
        self, kinds: Sequence[str], *, limit: int, before: int | None
    ) -> list[Change]:
        check_page(limit)
        cursor = None if before is None else str(before)
        return (await self._client.list_changes(kinds).page(limit=limit, cursor=cursor)).items
