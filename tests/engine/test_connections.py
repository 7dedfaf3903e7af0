"""The connections of a worker, and its needs behind a transaction pooler."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable

from laneway import Context, SyncContext
from tests.support.worker_harness import SOON, WorkerHarness, wait_until


def connections(harness: WorkerHarness) -> list[str]:
    rows = harness.rows(
        "select application_name from pg_stat_activity where datname = current_database()"
        " and application_name like 'laneway%' and application_name not like 'laneway client%'"
        # Open for a moment every few seconds.
        " and application_name not like 'laneway strays%'"
        " order by 1"
    )
    # Behind a pooler each has a name that no other connection has.
    return [re.sub(r" [0-9a-f]{12}$", "", row[0]) for row in rows]


def handler_threads() -> set[threading.Thread]:
    """By name: interpreter and event loop may have other threads."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("laneway-")}


async def test_fifty_running_jobs_need_no_more_than_five_connections(
    harness: WorkerHarness,
) -> None:
    let_go = threading.Event()
    others = handler_threads()

    @harness.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        while not let_go.is_set():
            await ctx.progress(1)
            await asyncio.sleep(0.05)

    @harness.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        ctx.save(1)
        let_go.wait(120)

    harness.lane("default", lease_seconds=2)
    await harness.start_worker()
    jobs = await harness.lw.submit_many([("async_job", {})] * 50 + [("thread_job", {})] * 40)
    seen: set[int] = set()

    def busy() -> bool:
        seen.add(len(connections(harness)))
        return bool(harness.one("select count(*) from laneway.lease") == 50 + 32)

    await wait_until(busy)
    await wait_until(lambda: harness.one("select count(*) from laneway.progress") == 50 + 32)
    await wait_until(lambda: "laneway heartbeat" in connections(harness))
    seen.add(len(connections(harness)))
    assert max(seen) <= 5
    assert len(handler_threads() - others) == 32
    let_go.set()
    await wait_until(lambda: harness.count("completed") == len(jobs))
    assert connections(harness) == [
        "laneway claim",
        "laneway heartbeat",
        "laneway listen",
        "laneway settle",
        "laneway worker",
    ]


async def test_worker_behind_a_pooler_neither_prepares_nor_listens(
    make_harness: Callable[..., WorkerHarness],
) -> None:
    harness = make_harness(pooler=True)
    harness.lane("default", lease_seconds=2, poll_interval_ms=100)
    let_go = asyncio.Event()

    @harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context, n: int) -> int:
        await ctx.save(n)
        if n == 1 and ctx.attempt == 1:
            raise ValueError
        if n == 2:
            await let_go.wait()
        return n

    @harness.lw.handler("wait")
    async def wait(ctx: Context) -> None:
        await asyncio.Event().wait()

    worker = await harness.start_worker()
    jobs = [await harness.lw.submit("job", {"n": n}) for n in range(3)]
    later = await harness.lw.submit("job", {"n": 3}, delay=0.3)
    cancelled = await harness.lw.submit("wait")
    assert [await job.wait(60) for job in (*jobs[:2], later)] == [0, 1, 3]
    await cancelled.cancel()
    assert (await harness.ended(cancelled)).status == "cancelled"
    assert set(connections(harness)) == {
        "laneway claim",
        "laneway heartbeat",
        "laneway settle",
        "laneway worker",
    }
    for database in (*worker.databases, harness.lw.database):
        async with database.connection() as conn:
            cursor = await conn.execute("select count(*) from pg_prepared_statements")
            assert await cursor.fetchone() == (0,)
            cursor = await conn.execute("select current_setting('statement_timeout')")
            assert await cursor.fetchone() == ("0",)
    let_go.set()
    assert await jobs[2].wait(60) == 2
    await worker.stop()
    assert harness.holds_nothing()


async def test_worker_behind_a_pooler_listens_by_a_separate_connection(
    make_harness: Callable[..., WorkerHarness], dsn: str
) -> None:
    harness = make_harness(pooler=True, listen_dsn=dsn)
    harness.lane("default", poll_interval_ms=120000)

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    worker = await harness.start_worker()
    await wait_until(lambda: worker.wakeups.is_listening and worker.heartbeat.is_ready)
    await (await harness.lw.submit("job")).wait(60)
