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
from tests.engine import isolated
from tests.engine.workshop import PATIENCE, QUICK, Workshop, until


async def test_a_stopping_worker_waits_for_short_jobs(either_shop: Workshop) -> None:
    shop = either_shop
    go_on = threading.Event()
    begun: list[str] = []

    @shop.lw.handler("async_job")
    async def async_job(ctx: Context) -> str:
        begun.append("async")
        await asyncio.to_thread(go_on.wait, 20)
        return "finished"

    @shop.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> str:
        begun.append("thread")
        go_on.wait(120)
        return "finished"

    worker = await shop.hire()
    jobs = [await shop.lw.submit(f"{kind}_job") for kind in ("async", "thread")]
    # Claimed is not begun: what has not begun goes back at once.
    await until(lambda: len(begun) == 2)
    stopping = asyncio.create_task(worker.stop())
    await until(lambda: not worker.is_running)
    late = await shop.lw.submit("async_job")
    go_on.set()
    await stopping
    for job in jobs:
        ended = await job.get()
        assert (ended.status, ended.result, ended.attempt) == ("completed", "finished", 1)
    assert shop.status(late) == "approved"
    assert shop.holds_nothing()


async def test_stopping_worker_logs_what_it_waits_for(
    shop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    @shop.lw.handler("wait")
    async def wait(ctx: Context) -> None:
        await asyncio.Event().wait()

    caplog.set_level(logging.INFO, "laneway")
    idle = await shop.hire(only_lanes=frozenset({"heavy"}))
    await stop_worker(idle, None, asyncio.Event())
    assert "stopping" not in caplog.text
    worker = await shop.hire()
    for job in [await shop.lw.submit("wait"), await shop.lw.submit("wait")]:
        await shop.running(job)
    await until(lambda: len(worker.executor.active) == 2)
    hurry = asyncio.Event()
    hurry.set()
    await stop_worker(worker, 7.5, hurry)
    assert "stopping: 2 jobs have 7.5 s to end; Ctrl-C or SIGTERM again to stop now" in caplog.text


@pytest.mark.parametrize("isolation", ["async", "thread", "process"])
async def test_a_job_longer_than_the_grace_is_released_without_charge(
    shop: Workshop, isolation: str
) -> None:
    @shop.lw.handler("async_wait")
    async def async_wait(ctx: Context) -> None:
        await ctx.save("began")
        await asyncio.Event().wait()

    @shop.lw.handler("thread_wait")
    def thread_wait(ctx: SyncContext) -> None:
        ctx.save("began")
        while True:
            ctx.check()
            threading.Event().wait(0.01)

    shop.lw.handlers.add(isolated.lw.handlers["process_wait"])
    worker = await shop.hire()
    job = await shop.lw.submit(f"{isolation}_wait")
    await until(lambda: shop.rows("select 1 from laneway.progress"))
    await worker.stop(0.1)
    after = await job.get()
    assert (after.status, after.attempt, after.retries) == ("approved", 1, 0)
    assert [a.outcome for a in after.attempts] == ["released"]
    assert after.checkpoint is not None
    assert shop.one("select count(*) from laneway.ready") == 1
    assert shop.holds_nothing()
    assert shop.one("select count(*) from laneway.workers where stopped_at is not null") == 1


async def test_a_released_job_is_started_at_once_by_another_worker(shop: Workshop) -> None:
    """Long before the other worker would have polled."""
    starts: list[int] = []

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        starts.append(ctx.attempt)
        await asyncio.Event().wait()

    @shop.lw.handler("quick")
    async def quick(ctx: Context) -> None: ...

    shop.lane("default", poll_interval_ms=60000)
    first = await shop.hire_unlike({"concurrency": 1})
    submitted = await shop.lw.submit("job")
    await shop.running(submitted)
    await shop.hire()
    # The first has no room for it: the second is up once it is done.
    await (await shop.lw.submit("quick")).wait(60)
    await first.stop(0.0)
    await until(lambda: starts == [1, 2], timeout=60)


async def test_thread_that_ignores_its_cancellation_is_abandoned(shop: Workshop) -> None:
    let_go, returned = threading.Event(), threading.Event()

    @shop.lw.handler("job")
    def job(ctx: SyncContext) -> None:
        let_go.wait(2 * PATIENCE)
        returned.set()

    worker = await shop.hire()
    submitted = await shop.lw.submit("job")
    await shop.running(submitted)
    await worker.stop(0.0)
    assert not returned.is_set()
    assert shop.status(submitted) == "approved"
    assert shop.holds_nothing()
    let_go.set()


async def test_an_async_handler_that_does_not_listen_does_not_keep_the_worker(
    shop: Workshop,
) -> None:
    let_go = asyncio.Event()

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    worker = await shop.hire()
    submitted = await shop.lw.submit("job")
    await shop.running(submitted)
    await asyncio.wait_for(worker.stop(0.0), 60)
    assert shop.status(submitted) == "approved"
    assert shop.holds_nothing()
    let_go.set()


async def test_a_second_signal_releases_at_once(shop: Workshop) -> None:
    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        await asyncio.Event().wait()

    worker = await shop.hire()
    submitted = await shop.lw.submit("job")
    await shop.running(submitted)
    hurry = asyncio.Event()
    stopping = asyncio.create_task(worker.stop(60, hurry))
    await until(lambda: not worker.is_running)
    assert shop.status(submitted) == "running"
    hurry.set()
    await asyncio.wait_for(stopping, 60)
    assert shop.status(submitted) == "approved"
    assert (await submitted.get()).retries == 0


async def test_jobs_claimed_while_the_worker_stops_are_released(shop: Workshop) -> None:
    ran: list[int] = []

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        ran.append(ctx.attempt)

    worker = await shop.hire()
    await until(lambda: worker.heartbeat.is_ready)
    # The claim waits for this lock and comes through only when the worker is stopping already.
    with shop.conn.transaction():
        shop.do("lock table laneway.ready in access exclusive mode")
        for loop in worker.loops.values():
            loop.wake()
        await until(lambda: shop.is_waiting("claim"))
        stopping = asyncio.create_task(worker.stop(5))
        await until(lambda: not worker.is_running)
        shop.insert("job", "{}")
    await stopping
    assert ran == []
    assert shop.count("approved") == 1
    assert shop.holds_nothing()


async def test_a_lane_that_appears_while_the_worker_stops_is_not_served(shop: Workshop) -> None:
    let_go = asyncio.Event()
    ran: list[str] = []

    @shop.lw.handler("slow")
    async def slow(ctx: Context) -> None:
        await let_go.wait()

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        ran.append("job")

    shop.lane("default", poll_interval_ms=100)
    worker = await shop.hire()
    running = await shop.lw.submit("slow")
    await shop.running(running)
    stopping = asyncio.create_task(worker.stop(20))
    await until(lambda: not worker.is_running)
    before = shop.one("select version from laneway.control")
    shop.lane("fresh", max_slots=5)
    shop.lane("fresh", job_types=["job"])
    waiting = await shop.lw.submit("job")
    # The worker still polls while it drains, and so hears of the new lane.
    seen = worker.poller
    assert shop.one("select version from laneway.control") > before
    for _ in range(3):
        await seen.run_once()
    let_go.set()
    await stopping
    assert ran == []
    assert shop.status(waiting) == "approved"


async def test_resources_are_loaded_before_the_first_job_and_freed_at_the_end(
    shop: Workshop,
) -> None:
    events: list[str] = []

    @shop.lw.on_start
    async def load(resources: SimpleNamespace) -> None:
        events.append("load")
        resources.model = "a model"

    @shop.lw.on_start
    def load_more(resources: SimpleNamespace) -> None:
        resources.more = f"more than {resources.model}"

    @shop.lw.on_stop
    def free(resources: SimpleNamespace) -> None:
        events.append(f"free {resources.model}")

    @shop.lw.handler("async_job")
    async def async_job(ctx: Context) -> str:
        events.append("job")
        return str(ctx.resources.more)

    @shop.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> str:
        return str(ctx.resources.more)

    first = await shop.lw.submit("async_job")
    worker = await shop.hire()
    assert await first.wait(60) == "more than a model"
    assert await (await shop.lw.submit("thread_job")).wait(60) == "more than a model"
    await worker.stop()
    assert events == ["load", "job", "free a model"]


async def test_a_worker_whose_resources_cannot_be_loaded_leaves_nothing_open(
    shop: Workshop,
) -> None:
    @shop.lw.on_start
    def load(resources: SimpleNamespace) -> None:
        raise ConnectionError("the model is not there")

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    with pytest.raises(ConnectionError):
        await shop.hire()
    await until(
        lambda: (
            not shop.rows(
                "select 1 from pg_stat_activity where datname = current_database()"
                " and application_name in ('laneway worker', 'laneway claim', 'laneway settle')"
            )
        )
    )


async def test_resources_that_cannot_be_freed_do_not_keep_the_connections(
    shop: Workshop,
) -> None:
    @shop.lw.on_stop
    def free(resources: SimpleNamespace) -> None:
        raise ConnectionError("gone already")

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    worker = await shop.hire()
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


async def test_the_leader_resigns_when_it_stops(shop: Workshop) -> None:
    @shop.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    first = await shop.hire_unlike({"leader_ttl": 600.0})
    await until(lambda: first.leader_services.watchdog.is_leader)
    epoch = shop.one("select epoch from laneway.leader")
    second = await shop.hire_unlike({"leader_ttl": 0.2})
    await first.stop()
    await until(lambda: second.leader_services.watchdog.is_leader)
    assert shop.one("select holder, epoch from laneway.leader") == (second.id, epoch + 1)


async def test_a_worker_stops_though_the_database_hangs(
    shop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        await asyncio.Event().wait()

    worker = await shop.hire()
    submitted = await shop.lw.submit("job")
    await shop.running(submitted)
    with shop.conn.transaction():
        shop.do("lock table laneway.lease, laneway.ready in access exclusive mode")
        for loop in worker.loops.values():
            loop.wake()
        async with asyncio.timeout(PATIENCE):
            await worker.stop(0.0)
    with pytest.raises(LanewayError):
        await worker.databases.rest.run(lanes.read())
