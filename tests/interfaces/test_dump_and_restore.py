"""A dump restored into a fresh database is identical and continues to work."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from fastapi import FastAPI
from psycopg.sql import SQL, Identifier

from laneway import Context
from laneway.api.app import make_app
from laneway.config.settings import Settings
from laneway.control import approval, health, limits, schedules
from laneway.control.health_check import Finding
from laneway.domain.approval import Approval
from laneway.embedded.binaries import find_binaries
from laneway.store.database import Database
from tests.api.conftest import People, Principal
from tests.api.streaming import reading
from tests.conftest import Server
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import WorkerHarness, wait_until

STATES = {
    "pending", "awaiting_approval", "approved", "running", "completed", "failed", "cancelled",
}  # fmt: skip


def programs(postgres: Server) -> Path:
    """The programs of the server's version: an older pg_dump refuses it, a newer restore fails."""
    major = postgres.admin.info.server_version // 10_000
    found = find_binaries()
    return (
        found.directory if found.major == str(major) else Path(f"/usr/lib/postgresql/{major}/bin")
    )


@pytest.fixture
def fresh(postgres: Server) -> Iterator[str]:
    with postgres.database("template0") as dsn:
        yield dsn


def counts(dsn: str) -> dict[str, int]:
    """Count the rows of every table."""
    tables = (
        "select relname from pg_class"
        " where relnamespace = 'laneway'::regnamespace and relkind = 'r'"
    )
    with psycopg.connect(dsn) as conn:
        return {
            name: conn.execute(  # type: ignore[index]
                SQL("select count(*) from laneway.{}").format(Identifier(name))
            ).fetchone()[0]
            for (name,) in conn.execute(tables).fetchall()
        }


async def fill(database: Database, factory: JobFactory) -> None:
    """Create jobs in every state, with their rows in other tables."""
    factory.publish("greet", limits=("gpu",))
    factory.publish("gated", approval=Approval())
    factory.publish("costly", approval=Approval(), has_analysis=True)
    await limits.tune(database, "gpu", {"max_concurrent": 3}, by="ann")
    nightly = {"job_type": "greet", "cron": "0 3 * * *"}
    await schedules.put(database, "nightly", nightly, by="ann")
    factory.completed()
    factory.failed()
    factory.running(unique_key="held")
    cancelled = factory.submit()
    factory.submit(delay=86_400.0)
    factory.submit(unique_key="waiting")
    factory.submit("gated", created_by="ann")
    factory.submit("costly", created_by="ann")
    query = "select laneway.cancel(seq, 'ann', 'not needed') from laneway.jobs where id = %s"
    factory.conn.execute(query, [cancelled])
    # Its worker has ended.
    factory.conn.execute("update laneway.lease set lease_until = clock_timestamp()")


@asynccontextmanager
async def served(dsn: str) -> AsyncIterator[FastAPI]:
    settings = Settings.load(database_url=dsn)
    database = Database(dsn, settings, role="tests restore")
    app = make_app(settings, database)
    try:
        yield app
    finally:
        await app.state.close()
        await database.close()


async def first_event(app: FastAPI, who: Principal, job_id: object) -> str:
    async with reading(app, who, f"/jobs/{job_id}/stream") as stream:
        heard = await stream.next()
        assert heard is not None
        return heard.id


async def test_restored_database_is_identical_and_continues(
    dsn: str, fresh: str, postgres: Server, database: Database, factory: JobFactory, people: People,
    app: FastAPI, tmp_path: Path,
) -> None:  # fmt: skip
    await fill(database, factory)
    operator = people.new("ben", "operator")
    states = "select status, min(id::text)::uuid from laneway.jobs_view group by status"
    found = dict(factory.conn.execute(states).fetchall())
    assert found.keys() == STATES
    waiting = found["awaiting_approval"]
    seen = await first_event(app, operator, waiting)
    before = counts(dsn)
    restore(programs(postgres), dsn, fresh, tmp_path / "dump")
    assert counts(fresh) == before

    async with served(fresh) as restored, WorkerHarness(fresh) as harness:

        @harness.lw.handler("greet", limits=["gpu"])
        async def greet(ctx: Context) -> str:
            return "hello"

        @harness.lw.handler("gated", approval=True)
        async def gated(ctx: Context) -> str:
            return "allowed"

        await harness.start_worker()
        done = "select count(*) from laneway.jobs_view where status = 'completed'"
        # The job from before the dump, the running one and the due one.
        await wait_until(lambda: harness.rows(done) == [(3,)], 120)
        # A stream from before the dump continues, with the same token.
        async with reading(restored, operator, f"/jobs/{waiting}/stream", last=seen) as stream:
            await harness.lw.operate(approval.approve, waiting, by="carl")
            heard = await stream.rest()
        assert heard[-1].name == "job.completed"
        assert (
            await harness.lw.operate(schedules.run_now, "nightly", by="carl")
        ).job_id is not None
        await wait_until(lambda: harness.rows(done) == [(5,)], 120)
        checks = [check async for check in health.examine(harness.lw.database)]
        failed = [check for check in checks if check.finding is Finding.FAIL]
        assert failed == []


def restore(programs: Path, source: str, target: str, path: Path) -> None:
    for command in (
        ["pg_dump", "--format=custom", f"--file={path}", f"--dbname={source}"],
        ["pg_restore", "--exit-on-error", f"--dbname={target}", str(path)],
    ):
        run = [str(programs / command[0]), *command[1:]]
        done = subprocess.run(run, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
