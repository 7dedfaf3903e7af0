"""An application with its workers in this process, and direct queries of its database."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import psycopg

from laneway import Job, JobHandle, Laneway, RetryPolicy
from laneway.config.settings import Settings
from laneway.engine.worker import Worker

PATIENCE = 120.0
QUICK: dict[str, Any] = {
    "leader_ttl": 1.0,
    "watchdog_interval": 0.1,
    "cancel_grace": 0.3,
    "shutdown_grace": 10.0,
}
SOON = RetryPolicy(base=0.05, cap=0.05, jitter=0)


async def wait_until(look: Callable[[], Any], timeout: float = PATIENCE) -> Any:
    """Wait until `look` finds something, and return that."""
    deadline = time.monotonic() + timeout
    pause = 0.01
    while True:
        found = look()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {timeout} s: {inspect.getsource(look)}"
        await asyncio.sleep(pause)
        # Most looks are queries; many tests look at the same time.
        pause = min(0.05, pause * 1.2)


class WorkerHarness:
    """Handlers are registered on `lw`; `start_worker` starts workers, which end with the test."""

    def __init__(self, dsn: str, **settings: Any) -> None:
        self.dsn = dsn
        self.lw = Laneway(dsn, **{**QUICK, **settings})
        self.conn = psycopg.connect(dsn, autocommit=True, application_name="tests")
        self.workers: list[Worker] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self.workers:
            await worker.stop(0.0)
        await self.lw.close()
        self.conn.close()

    async def start_worker(self, lw: Laneway | None = None, **options: Any) -> Worker:
        """Start a worker; several of them act like several processes."""
        worker = (lw or self.lw).worker(**options)
        self.workers.append(worker)
        await worker.start()
        return worker

    async def start_worker_with(self, settings: dict[str, Any], **options: Any) -> Worker:
        """Start a worker with the same handlers and other settings."""
        changed = Settings.load(database_url=self.dsn, **{**QUICK, **settings})
        worker = Worker(self.dsn, changed, self.lw.handlers, **options)
        self.workers.append(worker)
        await worker.start()
        return worker

    # -- queries -------------------------------------------------------------------------------

    def rows(self, query: str, *params: Any) -> list[tuple[Any, ...]]:
        cursor = self.conn.execute(query.encode(), params or None)
        return cursor.fetchall() if cursor.description else []

    def one(self, query: str, *params: Any) -> Any:
        row = self.rows(query, *params)[0]
        return row[0] if len(row) == 1 else row

    def do(self, query: str, *params: Any) -> int:
        return self.conn.execute(query.encode(), params or None).rowcount

    def status(self, job: JobHandle | UUID) -> str:
        job_id = job if isinstance(job, UUID) else job.id
        return str(self.one("select status from laneway.jobs_view where id = %s", job_id))

    def seq(self, job: JobHandle) -> int:
        return int(self.one("select seq from laneway.jobs where id = %s", job.id))

    def count(self, status: str) -> int:
        return int(self.one("select count(*) from laneway.jobs_view where status = %s", status))

    async def ended(self, job: JobHandle, timeout: float = PATIENCE) -> Job:
        """The job once it is terminal, with its attempts."""
        await wait_until(
            lambda: self.status(job) in ("completed", "failed", "cancelled"), timeout=timeout
        )
        return await job.get()

    async def running(self, job: JobHandle) -> None:
        """Wait until a worker has the job; a claim is stored before its worker knows of it."""
        await wait_until(lambda: self.status(job) == "running" and self._has_arrived(job))

    def _has_arrived(self, job: JobHandle) -> bool:
        held = self.rows("select worker_id from laneway.lease where seq = %s", self.seq(job))
        mine = [worker for worker in self.workers if (worker.id,) in held]
        return not mine or any(
            str(run.claim.job_id) == str(job.id) for run in mine[0].executor.active.values()
        )

    def is_waiting(self, role: str) -> bool:
        """Whether a connection of this role waits for a lock, also one that we hold."""
        with psycopg.connect(self.dsn, autocommit=True, application_name="tests") as conn:
            found = conn.execute(
                "select 1 from pg_stat_activity where application_name = %s"
                " and wait_event_type = 'Lock' and datname = current_database()",
                [f"laneway {role}"],
            )
            return found.fetchone() is not None

    def holds_nothing(self) -> bool:
        """Whether no lease and no counted slot remains."""
        return bool(
            self.one("select count(*) from laneway.lease") == 0
            and self.one("select coalesce(sum(abs(running)), 0) from laneway.slot_usage") == 0
        )

    # -- changes -------------------------------------------------------------------------------

    def lane(self, name: str, **columns: Any) -> None:
        """Create or change a lane directly in the database."""
        self.do("insert into laneway.worker_lanes (name) values (%s) on conflict do nothing", name)
        for column, value in columns.items():
            self.do(f"update laneway.worker_lanes set {column} = %s where name = %s", value, name)

    def lapse(self, job: JobHandle) -> None:
        """End the lease of a running job, as if it had not been renewed."""
        seq = self.seq(job)
        changed = self.do(
            "update laneway.lease set lease_until = clock_timestamp() - interval '1 second'"
            " where seq = %s",
            seq,
        )
        assert changed == 1

    def insert(self, job_type: str, payload: str, **columns: Any) -> UUID:
        """Insert a job as another program could, with any payload."""
        max_retries = columns.get("max_retries", 3)
        row = self.one(
            "with j as (insert into laneway.jobs (id, job_type, payload, max_retries)"
            "  values (gen_random_uuid(), %s, %s::jsonb, %s) returning seq, id, job_type),"
            " r as (insert into laneway.ready (seq, job_type, rank) select seq, job_type, 0 from j)"
            " select id from j",
            job_type,
            payload,
            max_retries,
        )
        assert isinstance(row, UUID)
        return row
