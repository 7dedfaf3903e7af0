"""Graceful shutdown: nothing new, short jobs finish, long ones go back without charge."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from types import SimpleNamespace

import pytest

from laneway import Context, Laneway, SyncContext
from laneway.engine.process.lifecycle import TO_STOP, run_worker_process, stop_worker
from laneway.errors import LanewayError
from laneway.store import lanes
from tests.engine import isolation_handlers
from tests.support.worker_harness import PATIENCE, QUICK, WorkerHarness, wait_until


async def test_stopping_worker_waits_for_short_jobs(either_harness: WorkerHarness) -> None:
    harness = either_harness
    go_on = threading.Event()
    begun: list[str] = []

    @harness.lw.handler("async_job")
    async def async_job(ctx: Context) -> str:
        begun.append("async")
        await asyncio.to_thread(go_on.wait, 20)
        return "finished"

    @harness.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> str:
        begun.append("thread")
        go_on.wait(120)
        return "finished"

    worker = await harness.start_worker()
    jobs = [await harness.lw.submit(f"{kind}_job") for kind in ("async", "thread")]
    # Claimed is not begun: what has not begun goes back at once.
    await wait_until(lambda: len(begun) == 2)
    stopping = asyncio.create_task(worker.stop())
    await wait_until(lambda: not worker.is_running)
    late = await harness.lw.submit("async_job")
    go_on.set()
    await stopping
    for job in jobs:
        ended = await job.get()
        assert (ended.status, ended.result, ended.attempt) == ("completed", "finished", 1)
    assert harness.status(late) == "approved"
    assert harness.holds_nothing()


async def test_stopping_worker_logs_remaining_jobs(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("wait")
    async def wait(ctx: Context) -> None:
        await asyncio.Event().wait()

    # As --quiet does.
    caplog.set_level(logging.WARNING, "laneway.jobs")
    caplog.set_level(logging.INFO, "laneway")
    idle = await harness.start_worker(only_lanes=frozenset({"heavy"}))
    await stop_worker(idle, None, asyncio.Event())
    assert "stopping" not in caplog.text
    worker = await harness.start_worker()
    first, second = [await harness.lw.submit("wait"), await harness.lw.submit("wait")]
    for job in (first, second):
        await harness.running(job)
    await wait_until(lambda: len(worker.executor.active) == 2)
    hurry = asyncio.Event()
    hurry.set()
    await stop_worker(worker, 7.5, hurry)
    assert "stopping: 2 jobs have 7.5 s to end; Ctrl-C or SIGTERM again to stop now" in caplog.text
    warned = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert warned[-1].getMessage() == (
        "2 jobs did not end in time: returned to the queue, to run again:"
        f" wait {first.id}, wait {second.id}"
    )
    assert warned[-1].name == "laneway"  # not silenced by --quiet


@pytest.mark.parametrize("isolation", ["async", "thread", "process"])
async def test_job_longer_than_the_grace_is_released_without_charge(
    harness: WorkerHarness, isolation: str
) -> None:
    @harness.lw.handler("async_wait")
    async def async_wait(ctx: Context) -> None:
        await ctx.save("began")
        await asyncio.Event().wait()

    @harness.lw.handler("thread_wait")
    def thread_wait(ctx: SyncContext) -> None:
        ctx.save("began")
        while True:
            ctx.check()
            threading.Event().wait(0.01)

    harness.lw.handlers.add(isolation_handlers.lw.handlers["process_wait"])
    worker = await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_wait")
    await wait_until(lambda: harness.rows("select 1 from laneway.progress"))
    await worker.stop(0.1)
    after = await job.get()
    assert (after.status, after.attempt, after.retries) == ("approved", 1, 0)
    assert [a.outcome for a in after.attempts] == ["released"]
    assert after.checkpoint is not None
    assert harness.one("select count(*) from laneway.ready") == 1
    assert harness.holds_nothing()
    assert harness.one("select count(*) from laneway.workers where stopped_at is not null") == 1


async def test_released_job_is_started_at_once_by_another_worker(harness: WorkerHarness) -> None:
    """Long before the other worker would have polled."""
    starts: list[int] = []

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        starts.append(ctx.attempt)
        await asyncio.Event().wait()

    @harness.lw.handler("quick")
    async def quick(ctx: Context) -> None: ...

    harness.lane("default", poll_interval_ms=60000)
    first = await harness.start_worker_with({"concurrency": 1})
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    await harness.start_worker()
    # The first has no room for it: the second is up once it is done.
    await (await harness.lw.submit("quick")).wait(60)
    await first.stop(0.0)
    await wait_until(lambda: starts == [1, 2], timeout=60)


async def test_thread_that_ignores_its_cancellation_is_abandoned(harness: WorkerHarness) -> None:
    let_go, returned = threading.Event(), threading.Event()

    @harness.lw.handler("job")
    def job(ctx: SyncContext) -> None:
        let_go.wait(2 * PATIENCE)
        returned.set()

    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    await worker.stop(0.0)
    assert not returned.is_set()
    assert harness.status(submitted) == "approved"
    assert harness.holds_nothing()
    let_go.set()


async def test_async_handler_that_does_not_listen_does_not_keep_the_worker(
    harness: WorkerHarness,
) -> None:
    let_go = asyncio.Event()

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    await asyncio.wait_for(worker.stop(0.0), 60)
    assert harness.status(submitted) == "approved"
    assert harness.holds_nothing()
    let_go.set()


async def test_second_signal_releases_at_once(harness: WorkerHarness) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        await asyncio.Event().wait()

    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    hurry = asyncio.Event()
    stopping = asyncio.create_task(worker.stop(60, hurry))
    await wait_until(lambda: not worker.is_running)
    assert harness.status(submitted) == "running"
    hurry.set()
    await asyncio.wait_for(stopping, 60)
    assert harness.status(submitted) == "approved"
    assert (await submitted.get()).retries == 0


async def test_jobs_claimed_while_the_worker_stops_are_released(harness: WorkerHarness) -> None:
    ran: list[int] = []

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        ran.append(ctx.attempt)

    worker = await harness.start_worker()
    await wait_until(lambda: worker.heartbeat.is_ready)
    # The claim waits for this lock and comes through only when the worker is stopping already.
    with harness.conn.transaction():
        harness.do("lock table laneway.ready in access exclusive mode")
        for loop in worker.loops.values():
            loop.wake()
        await wait_until(lambda: harness.is_waiting("claim"))
        stopping = asyncio.create_task(worker.stop(5))
        await wait_until(lambda: not worker.is_running)
        harness.insert("job", "{}")
    await stopping
    assert ran == []
    assert harness.count("approved") == 1
    assert harness.holds_nothing()


async def test_lane_that_appears_while_the_worker_stops_is_not_served(
    harness: WorkerHarness,
) -> None:
    let_go = asyncio.Event()
    ran: list[str] = []

    @harness.lw.handler("slow")
    async def slow(ctx: Context) -> None:
        await let_go.wait()

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        ran.append("job")

    harness.lane("default", poll_interval_ms=100)
    worker = await harness.start_worker()
    running = await harness.lw.submit("slow")
    await harness.running(running)
    stopping = asyncio.create_task(worker.stop(20))
    await wait_until(lambda: not worker.is_running)
    before = harness.one("select version from laneway.control")
    harness.lane("fresh", max_slots=5)
    harness.lane("fresh", job_types=["job"])
    waiting = await harness.lw.submit("job")
    # The worker still polls while it drains, and so hears of the new lane.
    seen = worker.poller
    assert harness.one("select version from laneway.control") > before
    for _ in range(3):
        await seen.run_once()
    let_go.set()
    await stopping
    assert ran == []
    assert harness.status(waiting) == "approved"


async def test_resources_are_loaded_before_the_first_job_and_freed_at_the_end(
    harness: WorkerHarness,
) -> None:
    events: list[str] = []

    @harness.lw.on_start
    async def load(resources: SimpleNamespace) -> None:
        events.append("load")
        resources.model = "a model"

    @harness.lw.on_start
    def load_more(resources: SimpleNamespace) -> None:
        resources.more = f"more than {resources.model}"

    @harness.lw.on_stop
    def free(resources: SimpleNamespace) -> None:
        events.append(f"free {resources.model}")

    @harness.lw.handler("async_job")
    async def async_job(ctx: Context) -> str:
        events.append("job")
        return str(ctx.resources.more)

    @harness.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> str:
        return str(ctx.resources.more)

    first = await harness.lw.submit("async_job")
    worker = await harness.start_worker()
    assert await first.wait(60) == "more than a model"
    assert await (await harness.lw.submit("thread_job")).wait(60) == "more than a model"
    await worker.stop()
    assert events == ["load", "job", "free a model"]


async def test_worker_whose_resources_cannot_be_loaded_leaves_nothing_open(
    harness: WorkerHarness,
) -> None:
    @harness.lw.on_start
    def load(resources: SimpleNamespace) -> None:
        raise ConnectionError("the model is not there")

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    with pytest.raises(ConnectionError):
        await harness.start_worker()
    await wait_until(
        lambda: (
            not harness.rows(
                "select 1 from pg_stat_activity where datname = current_database()"
                " and application_name in ('laneway worker', 'laneway claim', 'laneway settle')"
            )
        )
    )


async def test_resources_that_cannot_be_freed_do_not_keep_the_connections(
    harness: WorkerHarness,
) -> None:
    @harness.lw.on_stop
    def free(resources: SimpleNamespace) -> None:
        raise ConnectionError("gone already")

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    worker = await harness.start_worker()
    with pytest.raises(ConnectionError):
        await worker.stop()


def test_worker_process_that_cannot_start_leaves_signals_as_they_were(dsn: str) -> None:
    lw = Laneway(dsn, **QUICK)

    @lw.on_start
    def load(resources: SimpleNamespace) -> None:
        assert signal.getsignal(signal.SIGTERM) != before[0]
        raise ConnectionError("the model is not there")

    @lw.handler("job")
    async def job(ctx: Context) -> None: ...

    before = [signal.getsignal(number) for number in TO_STOP]
    with pytest.raises(ConnectionError):
        run_worker_process(lw.worker)
    assert [signal.getsignal(number) for number in TO_STOP] == before


async def test_leader_resigns_when_it_stops(harness: WorkerHarness) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    first = await harness.start_worker_with({"leader_ttl": 600.0})
    await wait_until(lambda: first.leader_services.watchdog.is_leader)
    epoch = harness.one("select epoch from laneway.leader")
    second = await harness.start_worker_with({"leader_ttl": 0.2})
    await first.stop()
    await wait_until(lambda: second.leader_services.watchdog.is_leader)
    assert harness.one("select holder, epoch from laneway.leader") == (second.id, epoch + 1)


async def test_worker_stops_though_the_database_hangs(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        await asyncio.Event().wait()

    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    with harness.conn.transaction():
        harness.do("lock table laneway.lease, laneway.ready in access exclusive mode")
        for loop in worker.loops.values():
            loop.wake()
        async with asyncio.timeout(PATIENCE):
            await worker.stop(0.0)
    with pytest.raises(LanewayError):
        await worker.databases.rest.run(lanes.read())
