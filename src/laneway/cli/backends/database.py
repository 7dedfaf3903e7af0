"""The verbs of commands, done in a database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from laneway.cli.backends.operations import OperationBackend, R, T
from laneway.control import (
    approval,
    audit,
    bulk,
    explain,
    freeze,
    history,
    job_types,
    jobs,
    limits,
    schedules,
    workers,
)
from laneway.control.operators import Operator, PageRequest, perform, read_page
from laneway.domain.actor import Actor
from laneway.domain.bulk import BulkProgress, BulkRequest, Preview
from laneway.domain.change import Change
from laneway.domain.counts import StateCount
from laneway.domain.explanation import Explanation
from laneway.domain.filter import JobFilter
from laneway.domain.freeze import Freeze
from laneway.domain.job import DEFAULT_WORKSPACE, Attempt, Job
from laneway.domain.job_id import IdMatches
from laneway.domain.limit import Tuned
from laneway.domain.overview import Overview, WorkerRow
from laneway.domain.page import Page
from laneway.domain.review import Review
from laneway.domain.schedule import Schedule, ScheduleSettings
from laneway.operations.operation import Invocation
from laneway.store.database import Database


class DatabaseBackend(OperationBackend):
    """Does what is asked as `by`."""

    def __init__(self, db: Database, by: Actor) -> None:
        self._db = db
        self._by = by
        self._operator = Operator(db, by)

    async def call(self, asked: Invocation[R]) -> R:
        return await perform(self._operator, asked)

    async def page(self, asked: Invocation[Page[T]], limit: int, cursor: str | None) -> Page[T]:
        return await read_page(self._operator, asked, PageRequest(limit, cursor))

    # -- jobs ---------------------------------------------------------------------------------

    async def submit(self, job_type: str, payload: object, **options: Any) -> Job:
        from laneway.client import Client

        client = Client(self._db, self._db.settings)
        async with (
            self._db.joined() as one,
            audit.audited(one, self._by, "job.submitted", "job") as deed,
            one.connection() as conn,
        ):
            given = {**options, "created_by": self._by}
            handle = await client.submit(job_type, payload, conn=conn, **given)
            deed.is_recorded = not handle.duplicate
            deed.name, deed.workspace = str(handle.id), options.get("workspace", DEFAULT_WORKSPACE)
            deed.after = {"job_type": job_type, "status": handle.status.value}
        client.wake([handle])
        await client.close()
        return replace(await handle.get(), duplicate=handle.duplicate)

    async def find_unpublished(self, job: Job) -> str | None:
        """None if a worker has published the job's type; else `; did you mean …?`, or empty."""
        from laneway.domain.suggestion import suggest
        from laneway.store.workers import published, published_names

        known = (await self._db.run(published([job.job_type]))).get(job.job_type)
        if known is not None and known.is_published:
            return None
        names = await self._db.run(published_names())
        return suggest(job.job_type, names)

    async def list_jobs(self, wanted: JobFilter, *, limit: int, cursor: str | None) -> Page[Job]:
        return await jobs.listing(self._db, wanted, limit=limit, cursor=cursor)

    async def find_ids(self, prefixes: Sequence[str]) -> list[IdMatches]:
        return await jobs.find_ids(self._db, prefixes)

    async def count_jobs(self, wanted: JobFilter) -> list[StateCount]:
        return await jobs.counts(self._db, wanted)

    async def review(self, job_id: UUID) -> Review:
        return await approval.review(self._db, job_id)

    async def attempts(self, job_id: UUID, *, limit: int, cursor: str | None) -> Page[Attempt]:
        return await jobs.attempts(self._db, job_id, limit=limit, cursor=cursor)

    async def explain(self, job_id: UUID) -> Explanation:
        return await explain.explain(self._db, job_id, reader=self._by)

    def follow(self, job_id: UUID, interval: float) -> AsyncIterator[Job]:
        """The job now and after every change seen, until it has ended."""
        return jobs.follow(self._db, job_id, interval=interval)

    async def approve(self, job_id: UUID, comment: str | None, seal: str | None) -> Job:
        return await approval.approve(self._db, job_id, by=self._by, comment=comment, seal=seal)

    async def reject(self, job_id: UUID, reason: str) -> Job:
        return await approval.reject(self._db, job_id, by=self._by, reason=reason)

    async def cancel(self, job_id: UUID, reason: str | None) -> Job:
        return await jobs.cancel(self._db, job_id, by=self._by, reason=reason)

    async def retry(self, job_id: UUID) -> Job:
        return await jobs.retry(self._db, job_id, by=self._by)

    async def run_now(self, job_id: UUID) -> Job:
        return await jobs.run_now(self._db, job_id, by=self._by)

    async def reprioritize(self, job_id: UUID, priority: int) -> Job:
        return await jobs.reprioritize(self._db, job_id, priority, by=self._by)

    async def check_deletable(self, job_id: UUID) -> Job:
        return await jobs.check_deletable(self._db, job_id)

    async def delete(self, job_id: UUID) -> None:
        await jobs.delete(self._db, job_id, by=self._by)

    async def preview(self, order: BulkRequest) -> Preview:
        return await bulk.preview(self._db, order, by=self._by)

    def run_bulk(self, order: BulkRequest, upto: int) -> AsyncIterator[BulkProgress]:
        """Does it; yields what has come of it so far, now and then."""
        return bulk.run(self._db, order, by=self._by, upto=upto)

    # -- lanes and workers --------------------------------------------------------------------

    async def freeze(
        self, names: Sequence[str] | None, *, deadline: float, or_thaw: bool
    ) -> Freeze:
        return await freeze.freeze(self._db, names, by=self._by, deadline=deadline, or_thaw=or_thaw)

    async def drain_worker(self, worker_id: UUID) -> WorkerRow:
        return await workers.drain(self._db, worker_id, by=self._by)

    async def resume_worker(self, worker_id: UUID) -> WorkerRow:
        return await workers.resume(self._db, worker_id, by=self._by)

    async def overview(self, active_limit: int = 1000) -> Overview:
        return await workers.overview(self._db, active_limit=active_limit)

    async def forget_publisher(self, application: str, job_type: str | None) -> list[str]:
        return await job_types.forget_publisher(
            self._db, application, job_type=job_type, by=self._by
        )

    # -- limits, schedules and their history --------------------------------------------------

    async def tune_limit(self, name: str, change: Mapping[str, object]) -> Tuned:
        return await limits.tune(self._db, name, change, by=self._by)

    async def put_schedule(self, name: str, change: ScheduleSettings) -> Schedule:
        return await schedules.put(self._db, name, change, by=self._by)

    async def history(
        self, kinds: Sequence[str], *, limit: int, before: int | None
    ) -> list[Change]:
        return await history.history(self._db, kinds, limit=limit, before=before)
