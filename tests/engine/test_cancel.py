"""Cancel: queued jobs never start, running ones stop in every isolation and keep what they had."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

import psutil
import pytest

from laneway import Context, JobHandle, Laneway, Snooze, SyncContext
from laneway.errors import JobFailed
from tests.engine import isolated
from tests.engine.workshop import Workshop, until


async def test_a_queued_job_that_is_cancelled_never_starts(either_shop: Workshop) -> None:
    shop = either_shop
    ran: list[str] = []

    @shop.lw.handler("job")
    async def job(ctx: Context, name: str) -> None:
        ran.append(name)

    first = await shop.lw.submit("job", {"name": "cancelled"})
    later = await shop.lw.submit("job", {"name": "delayed"}, delay=0.2)
    assert await first.cancel("changed my mind") == "cancelled"
    assert await later.cancel() == "cancelled"
    last = await shop.lw.submit("job", {"name": "kept"}, delay=0.4)
    await shop.hire()
    await last.wait(60)
    assert ran == ["kept"]
    assert shop.status(first) == shop.status(later) == "cancelled"


def waiting_handlers(shop: Workshop) -> None:
    @shop.lw.handler("async_wait")
    async def async_wait(ctx: Context) -> None:
        await ctx.save({"page": 7})
        await ctx.progress(1, 2, "waiting")
        await asyncio.Event().wait()

    @shop.lw.handler("thread_wait")
    def thread_wait(ctx: SyncContext) -> None:
        ctx.save({"page": 7})
        ctx.progress(1, 2, "waiting")
        while True:
            ctx.check()
            threading.Event().wait(0.01)

    shop.lw.handlers.add(isolated.lw.handlers["process_wait"])


async def saved(shop: Workshop, job: JobHandle) -> None:
    seq = shop.seq(job)
    await until(lambda: shop.rows("select 1 from laneway.progress where seq = %s", seq))


@pytest.mark.parametrize("isolation", ["async", "thread", "process"])
async def test_a_running_job_is_cancelled_by_notification(
    shop: Workshop, isolation: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The lease is an hour: neither a heartbeat nor a report brings the news."""
    caplog.set_level(logging.INFO, "laneway")
    waiting_handlers(shop)
    shop.lane("default", lease_seconds=3600)
    await shop.hire()
    job = await shop.lw.submit(f"{isolation}_wait")
    await until(lambda: shop.rows("select 1 from laneway.progress where message = 'waiting'"))
    assert await job.cancel("enough") == "running"
    ended = await shop.ended(job)
    assert ended.status == "cancelled"
    assert ended.checkpoint == {"page": 7}
    assert ended.progress is not None
    assert ended.progress.message == "waiting"
    assert [a.outcome for a in ended.attempts] == ["cancelled"]
    assert ended.retries == 0
    await until(shop.holds_nothing)
    with pytest.raises(JobFailed, match="cancelled"):
        await job.wait(60)
    assert [(r.levelname, r.getMessage()) for r in caplog.records if "attempt" in r.msg] == [
        (
            "INFO",
            f"{isolation}_wait {job.id}: attempt 1 was asked to stop: the job is being cancelled",
        )
    ]


@pytest.mark.parametrize("isolation", ["async", "thread", "process"])
async def test_heartbeat_reports_cancellation_without_notifications(
    workshop: Callable[..., Workshop], isolation: str
) -> None:
    shop = workshop(listen=False)
    shop.lane("default", lease_seconds=2, poll_interval_ms=100)
    waiting_handlers(shop)
    await shop.hire()
    job = await shop.lw.submit(f"{isolation}_wait")
    await shop.running(job)
    await job.cancel()
    ended = await shop.ended(job)
    assert ended.status == "cancelled"


async def test_a_handler_that_returns_after_its_cancellation_keeps_its_result(
    shop: Workshop,
) -> None:
    was_cancelled = asyncio.Event()

    @shop.lw.handler("async_obliging")
    async def async_obliging(ctx: Context) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            was_cancelled.set()
        return "kept"

    @shop.lw.handler("thread_obliging")
    def thread_obliging(ctx: SyncContext) -> str:
        while not ctx.cancelled:
            threading.Event().wait(0.01)
        return "kept"

    shop.lw.handlers.add(isolated.lw.handlers["process_obliging"])
    await shop.hire()
    for isolation in ("async", "thread", "process"):
        job = await shop.lw.submit(f"{isolation}_obliging")
        await shop.running(job)
        if isolation == "process":
            await saved(shop, job)
        await job.cancel()
        ended = await shop.ended(job)
        assert (ended.status, ended.result) == ("cancelled", "kept"), isolation
    assert was_cancelled.is_set()


async def test_a_failure_or_snooze_after_a_cancellation_is_not_retried(shop: Workshop) -> None:
    @shop.lw.handler("job")
    async def job(ctx: Context, snooze: bool) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise Snooze(0) if snooze else ValueError("too late")

    await shop.hire()
    for snooze in (True, False):
        submitted = await shop.lw.submit("job", {"snooze": snooze})
        await shop.running(submitted)
        await submitted.cancel()
        ended = await shop.ended(submitted)
        assert (ended.status, ended.attempt) == ("cancelled", 1)


async def test_a_lapse_after_a_cancellation_is_not_retried(shop: Workshop) -> None:
    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        await asyncio.Event().wait()

    await shop.hire()
    submitted = await shop.lw.submit("job")
    await shop.running(submitted)
    # Requested without a notification, as if the worker could not receive it.
    shop.do("update laneway.lease set cancel_requested_at = clock_timestamp()")
    shop.lapse(submitted)
    ended = await shop.ended(submitted)
    assert (ended.status, ended.attempt) == ("cancelled", 1)


async def test_async_handler_that_swallows_its_cancellation_is_abandoned(
    shop: Workshop,
) -> None:
    let_go = asyncio.Event()

    @shop.lw.handler("job")
    async def job(ctx: Context) -> str:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return "ignored"

    worker = await shop.hire()
    submitted = await shop.lw.submit("job")
    await shop.running(submitted)
    await submitted.cancel()
    ended = await shop.ended(submitted)
    assert (ended.status, ended.result) == ("cancelled", None)
    assert worker.capacity.in_use == 1
    let_go.set()
    await until(lambda: worker.capacity.in_use == 0)
    assert (await submitted.get()).result is None


async def test_thread_that_ignores_cancellation_keeps_its_room_until_it_returns(
    shop: Workshop,
) -> None:
    let_go = threading.Event()
    void: list[str] = []

    @shop.lw.handler("job")
    def job(ctx: SyncContext) -> str:
        let_go.wait(120)
        ctx.log("too late")
        void.append("not reached")
        return "ignored"

    worker = await shop.hire()
    submitted = await shop.lw.submit("job")
    await shop.running(submitted)
    await submitted.cancel()
    ended = await shop.ended(submitted)
    assert (ended.status, ended.result) == ("cancelled", None)
    await until(shop.holds_nothing)
    assert worker.capacity.in_use == 1
    let_go.set()
    await until(lambda: worker.capacity.in_use == 0)
    ended = await submitted.get()
    assert (ended.result, ended.attempts[0].log) == (None, ())


async def test_a_child_process_that_ignores_its_cancellation_is_killed(shop: Workshop) -> None:
    shop.lw.handlers.add(isolated.lw.handlers["process_deaf"])
    worker = await shop.hire()
    submitted = await shop.lw.submit("process_deaf")
    await saved(shop, submitted)
    pid = (await submitted.get()).checkpoint
    assert isinstance(pid, int)
    await submitted.cancel()
    ended = await shop.ended(submitted)
    assert (ended.status, ended.checkpoint) == ("cancelled", pid)
    await until(lambda: not psutil.pid_exists(pid))
    await until(lambda: worker.capacity.in_use == 0)


async def test_worker_of_another_application_stops_a_cancelled_job(
    shop: Workshop,
) -> None:
    """The one who cancels knows neither handler nor worker."""

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        await asyncio.Event().wait()

    await shop.hire()
    submitted = await shop.lw.submit("job")
    await shop.running(submitted)
    async with Laneway(shop.dsn) as other:
        await other.cancel(submitted.id, "from elsewhere", by="someone")
    ended = await shop.ended(submitted)
    assert ended.status == "cancelled"
    assert shop.one("select cancel_by, cancel_reason from laneway.outcome") == (
        "someone",
        "from elsewhere",
    )
