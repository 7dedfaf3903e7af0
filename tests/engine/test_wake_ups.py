"""Jobs start when they are due: by notification at once, by polling in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest

from laneway import Context, Laneway, RetryPolicy, Snooze, SyncContext
from laneway.store import jobs as store
from tests.support.worker_harness import WorkerHarness, wait_until


@pytest.fixture
def sleepy(harness: WorkerHarness) -> WorkerHarness:
    """Its worker polls once in two minutes: what starts sooner was not found by polling."""
    harness.lane("default", poll_interval_ms=120000)
    return harness


def echo(harness: WorkerHarness) -> list[float]:
    starts: list[float] = []

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        starts.append(time.monotonic())

    return starts


async def ready(harness: WorkerHarness) -> None:
    worker = await harness.start_worker()
    await wait_until(lambda: worker.heartbeat.is_ready)
    if worker.settings.can_listen:
        await wait_until(lambda: worker.wakeups.is_listening)


async def test_submit_starts_its_job_at_once(sleepy: WorkerHarness) -> None:
    starts = echo(sleepy)
    await ready(sleepy)
    for n in range(3):
        await (await sleepy.lw.submit("job")).wait(60)
        assert len(starts) == n + 1
    await (await sleepy.lw.submit_many([("job", {})]))[0].wait(60)


async def test_submit_from_another_process_or_in_sql_starts_its_job_at_once(
    sleepy: WorkerHarness,
) -> None:
    echo(sleepy)
    await ready(sleepy)
    async with Laneway(sleepy.dsn) as other:
        await (await other.submit("job")).wait(60)
    job_id = sleepy.one("select job_id from laneway.submit('job', wake => true)")
    await wait_until(lambda: sleepy.status(job_id) == "completed", timeout=60)


async def test_without_listening_polling_finds_the_job(dsn: str) -> None:
    async with WorkerHarness(dsn, listen=False) as harness:
        harness.lane("default", poll_interval_ms=100)
        starts = echo(harness)
        await ready(harness)
        job = await harness.lw.submit("job")
        await job.wait(60)
        assert len(starts) == 1
        assert not harness.rows(
            "select 1 from pg_stat_activity where datname = current_database()"
            " and application_name = 'laneway listen'"
        )


async def test_job_that_is_run_now_starts_at_once(sleepy: WorkerHarness) -> None:
    starts = echo(sleepy)
    tries: list[int] = []

    @sleepy.lw.handler("flaky", retry=RetryPolicy(base=3600, cap=7200))
    async def flaky(ctx: Context) -> None:
        tries.append(ctx.attempt)
        if ctx.attempt == 1:
            raise Snooze(3600)
        if ctx.attempt == 2:
            raise ValueError("later")

    await ready(sleepy)
    delayed = await sleepy.lw.submit("job", delay=3600)
    await sleepy.lw.jobs.run_now(delayed.id, by="ann")
    await delayed.wait(60)
    assert len(starts) == 1
    job = await sleepy.lw.submit("flaky")
    for attempt in (1, 2):
        await wait_until(partial(_waits_after, sleepy, job.id, attempt), timeout=60)
        await sleepy.lw.jobs.run_now(job.id, by="ann")
    await job.wait(60)
    assert tries == [1, 2, 3]


def _waits_after(harness: WorkerHarness, job_id: object, attempt: int) -> bool:
    found = harness.rows("select status, attempt from laneway.jobs_view where id = %s", job_id)
    return found == [("approved", attempt)]


async def test_delayed_job_starts_at_its_time_and_not_a_poll_later(sleepy: WorkerHarness) -> None:
    starts = echo(sleepy)
    await ready(sleepy)
    submitted = time.monotonic()
    job = await sleepy.lw.submit("job", delay=0.8)
    await job.wait(60)
    assert starts[0] - submitted >= 0.8


async def test_job_delayed_before_the_worker_started_starts_at_its_time(
    sleepy: WorkerHarness,
) -> None:
    starts = echo(sleepy)
    submitted = time.monotonic()
    job = await sleepy.lw.submit("job", delay=2.5)
    await ready(sleepy)
    assert starts == []
    await job.wait(60)
    assert starts[0] - submitted >= 2.5


async def test_retry_and_a_snooze_come_back_at_their_time(sleepy: WorkerHarness) -> None:
    starts: list[float] = []

    @sleepy.lw.handler("job", retry=RetryPolicy(base=0.5, cap=0.5, jitter=0))
    async def job(ctx: Context) -> None:
        starts.append(time.monotonic())
        if ctx.attempt < 3:
            raise ValueError

    await ready(sleepy)
    await (await sleepy.lw.submit("job")).wait(60)
    for earlier, later in pairwise(starts):
        assert later - earlier >= 0.5


async def test_operators_retry_starts_the_job_at_the_next_poll(harness: WorkerHarness) -> None:
    @harness.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise ValueError
        return ctx.attempt

    harness.lane("default", poll_interval_ms=100)
    await ready(harness)
    submitted = await harness.lw.submit("job")
    await harness.ended(submitted)
    await harness.lw.database.run(store.retry(submitted.id))
    await wait_until(lambda: harness.status(submitted) == "completed")
    ended = await submitted.get()
    assert (ended.result, ended.retries) == (2, 0)
    assert [a.outcome for a in ended.attempts] == ["failed", "completed"]


async def test_wake_ups_work_again_after_the_listening_connection_is_lost(
    sleepy: WorkerHarness,
) -> None:
    echo(sleepy)
    await ready(sleepy)
    (worker,) = sleepy.workers
    for _ in range(2):
        lost = sleepy.one(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity"
            " where datname = current_database() and application_name = 'laneway listen'"
        )
        assert lost == 1
        await wait_until(lambda: not worker.wakeups.is_listening)
        # Submitted while no worker listens: found as soon as one listens again.
        missed = await sleepy.lw.submit("job")
        await missed.wait(60)
        await wait_until(lambda: worker.wakeups.is_listening)
        await (await sleepy.lw.submit("job")).wait(60)


async def test_idle_worker_asks_at_most_twice_a_second(harness: WorkerHarness) -> None:
    echo(harness)
    worker = await harness.start_worker_with({"watchdog_interval": 1.5, "leader_ttl": 2.5})
    await wait_until(
        lambda: worker.heartbeat.is_ready and worker.leader_services.watchdog.is_leader
    )
    asked = 0
    for database in worker.databases:
        run = database.run

        async def counted(statement: object, run: object = run) -> object:
            nonlocal asked
            asked += 1
            return await run(statement)  # type: ignore[operator]

        database.run = counted  # type: ignore[method-assign, assignment]
    began = time.monotonic()
    await asyncio.sleep(3)
    await wait_until(lambda: asked >= 2)
    # It does ask: polling alone must find work. `make bench` counts at the server.
    # Five more for the first round of retention, and five for loops that a busy machine delayed.
    assert asked <= 2 * (time.monotonic() - began) + 10


async def test_isolation_used_up_by_a_claim_is_claimed_again_when_free(
    make_harness: Callable[..., WorkerHarness],
) -> None:
    harness = make_harness(threads=1)
    harness.lane("default", poll_interval_ms=120000)

    @harness.lw.handler("blocking")
    def blocking(ctx: SyncContext) -> None:
        return None

    await ready(harness)
    await harness.lw.submit_many([("blocking", {})] * 4)
    await wait_until(lambda: harness.count("completed") == 4, timeout=60)


async def test_job_that_appears_below_the_floor_is_found(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.engine.claim.floor_check.EVERY_S", 0.5)
    echo(harness)
    await ready(harness)
    early = harness.one("select nextval('laneway.jobs_seq_seq')")
    for _ in range(5):
        await (await harness.lw.submit("job")).wait(60)
    job_id = harness.one(
        "with job as (insert into laneway.jobs (seq, id, job_type, workspace, payload, priority,"
        "                                       max_retries)"
        "    values (%s, gen_random_uuid(), 'job', 'default', '{}', 0, 3) returning *),"
        " due as (insert into laneway.ready (seq, job_type, rank) select seq, job_type, 0 from job)"
        " select id from job",
        early,
    )
    await wait_until(lambda: harness.status(job_id) == "completed")
