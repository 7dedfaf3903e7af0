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
from tests.engine import isolation_handlers
from tests.support.worker_harness import WorkerHarness, wait_until


async def test_queued_job_that_is_cancelled_never_starts(either_harness: WorkerHarness) -> None:
    harness = either_harness
    ran: list[str] = []

    @harness.lw.handler("job")
    async def job(ctx: Context, name: str) -> None:
        ran.append(name)

    first = await harness.lw.submit("job", {"name": "cancelled"})
    later = await harness.lw.submit("job", {"name": "delayed"}, delay=0.2)
    assert await first.cancel("changed my mind") == "cancelled"
    assert await later.cancel() == "cancelled"
    last = await harness.lw.submit("job", {"name": "kept"}, delay=0.4)
    await harness.start_worker()
    await last.wait(60)
    assert ran == ["kept"]
    assert harness.status(first) == harness.status(later) == "cancelled"


def waiting_handlers(harness: WorkerHarness) -> None:
    @harness.lw.handler("async_wait")
    async def async_wait(ctx: Context) -> None:
        await ctx.save({"page": 7})
        await ctx.progress(1, 2, "waiting")
        await asyncio.Event().wait()

    @harness.lw.handler("thread_wait")
    def thread_wait(ctx: SyncContext) -> None:
        ctx.save({"page": 7})
        ctx.progress(1, 2, "waiting")
        while True:
            ctx.check()
            threading.Event().wait(0.01)

    harness.lw.handlers.add(isolation_handlers.lw.handlers["process_wait"])


async def saved(harness: WorkerHarness, job: JobHandle) -> None:
    seq = harness.seq(job)
    await wait_until(lambda: harness.rows("select 1 from laneway.progress where seq = %s", seq))


@pytest.mark.parametrize("isolation", ["async", "thread", "process"])
async def test_running_job_is_cancelled_by_notification(
    harness: WorkerHarness, isolation: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The lease is an hour: neither a heartbeat nor a report brings the news."""
    caplog.set_level(logging.INFO, "laneway")
    waiting_handlers(harness)
    harness.lane("default", lease_seconds=3600)
    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_wait")
    await wait_until(
        lambda: harness.rows("select 1 from laneway.progress where message = 'waiting'")
    )
    assert await job.cancel("enough") == "running"
    ended = await harness.ended(job)
    assert ended.status == "cancelled"
    assert ended.checkpoint == {"page": 7}
    assert ended.progress is not None
    assert ended.progress.message == "waiting"
    assert [a.outcome for a in ended.attempts] == ["cancelled"]
    assert ended.retries == 0
    await wait_until(harness.holds_nothing)
    with pytest.raises(JobFailed, match="cancelled"):
        await job.wait(60)
    assert [
        (r.levelname, r.getMessage()) for r in caplog.records if "asked to stop" in r.getMessage()
    ] == [
        (
            "INFO",
            f"{isolation}_wait {job.id}: attempt 1 was asked to stop: the job is being cancelled",
        )
    ]


@pytest.mark.parametrize("isolation", ["async", "thread", "process"])
async def test_heartbeat_reports_cancellation_without_notifications(
    make_harness: Callable[..., WorkerHarness], isolation: str
) -> None:
    harness = make_harness(listen=False)
    harness.lane("default", lease_seconds=2, poll_interval_ms=100)
    waiting_handlers(harness)
    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_wait")
    await harness.running(job)
    await job.cancel()
    ended = await harness.ended(job)
    assert ended.status == "cancelled"


async def test_handler_that_returns_after_its_cancellation_keeps_its_result(
    harness: WorkerHarness,
) -> None:
    was_cancelled = asyncio.Event()

    @harness.lw.handler("async_obliging")
    async def async_obliging(ctx: Context) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            was_cancelled.set()
        return "kept"

    @harness.lw.handler("thread_obliging")
    def thread_obliging(ctx: SyncContext) -> str:
        while not ctx.cancelled:
            threading.Event().wait(0.01)
        return "kept"

    harness.lw.handlers.add(isolation_handlers.lw.handlers["process_obliging"])
    await harness.start_worker()
    for isolation in ("async", "thread", "process"):
        job = await harness.lw.submit(f"{isolation}_obliging")
        await harness.running(job)
        if isolation == "process":
            await saved(harness, job)
        await job.cancel()
        ended = await harness.ended(job)
        assert (ended.status, ended.result) == ("cancelled", "kept"), isolation
    assert was_cancelled.is_set()


async def test_failure_or_snooze_after_a_cancellation_is_not_retried(
    harness: WorkerHarness,
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context, snooze: bool) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise Snooze(0) if snooze else ValueError("too late")

    await harness.start_worker()
    for snooze in (True, False):
        submitted = await harness.lw.submit("job", {"snooze": snooze})
        await harness.running(submitted)
        await submitted.cancel()
        ended = await harness.ended(submitted)
        assert (ended.status, ended.attempt) == ("cancelled", 1)


async def test_lapse_after_a_cancellation_is_not_retried(harness: WorkerHarness) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        await asyncio.Event().wait()

    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    # Requested without a notification, as if the worker could not receive it.
    harness.do("update laneway.lease set cancel_requested_at = clock_timestamp()")
    harness.lapse(submitted)
    ended = await harness.ended(submitted)
    assert (ended.status, ended.attempt) == ("cancelled", 1)


async def test_async_handler_that_swallows_its_cancellation_is_abandoned(
    harness: WorkerHarness,
) -> None:
    let_go = asyncio.Event()

    @harness.lw.handler("job")
    async def job(ctx: Context) -> str:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return "ignored"

    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    await submitted.cancel()
    ended = await harness.ended(submitted)
    assert (ended.status, ended.result) == ("cancelled", None)
    assert worker.capacity.in_use == 1
    let_go.set()
    await wait_until(lambda: worker.capacity.in_use == 0)
    assert (await submitted.get()).result is None


async def test_thread_that_ignores_cancellation_keeps_its_room_until_it_returns(
    harness: WorkerHarness,
) -> None:
    let_go = threading.Event()
    void: list[str] = []

    @harness.lw.handler("job")
    def job(ctx: SyncContext) -> str:
        let_go.wait(120)
        ctx.log("too late")
        void.append("not reached")
        return "ignored"

    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    await submitted.cancel()
    ended = await harness.ended(submitted)
    assert (ended.status, ended.result) == ("cancelled", None)
    await wait_until(harness.holds_nothing)
    assert worker.capacity.in_use == 1
    let_go.set()
    await wait_until(lambda: worker.capacity.in_use == 0)
    ended = await submitted.get()
    assert (ended.result, ended.attempts[0].log) == (None, ())


async def test_child_process_that_ignores_its_cancellation_is_killed(
    harness: WorkerHarness,
) -> None:
    harness.lw.handlers.add(isolation_handlers.lw.handlers["process_deaf"])
    worker = await harness.start_worker()
    submitted = await harness.lw.submit("process_deaf")
    await saved(harness, submitted)
    pid = (await submitted.get()).checkpoint
    assert isinstance(pid, int)
    await submitted.cancel()
    ended = await harness.ended(submitted)
    assert (ended.status, ended.checkpoint) == ("cancelled", pid)
    await wait_until(lambda: not psutil.pid_exists(pid))
    await wait_until(lambda: worker.capacity.in_use == 0)


async def test_worker_of_another_application_stops_a_cancelled_job(
    harness: WorkerHarness,
) -> None:
    """The one who cancels knows neither handler nor worker."""

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        await asyncio.Event().wait()

    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    async with Laneway(harness.dsn) as other:
        await other.cancel(submitted.id, "from elsewhere", by="someone")
    ended = await harness.ended(submitted)
    assert ended.status == "cancelled"
    assert harness.one("select cancel_by, cancel_reason from laneway.outcome") == (
        "someone",
        "from elsewhere",
    )
