"""The zombie: an attempt whose lease lapsed and whose job another attempt runs by now.

Whatever it writes is refused, its handler is stopped, and the second attempt stands.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

import pytest

from laneway import Cancel, Context, JobHandle, Snooze, SyncContext
from laneway.errors import StaleAttempt
from tests.support.worker_harness import SOON, WorkerHarness, wait_until


class Schedule:
    """Pause, lapse, second claim, resume while the second attempt runs."""

    def __init__(self, harness: WorkerHarness) -> None:
        self.harness = harness
        self.went_on = threading.Event()
        self.second_runs = threading.Event()
        self.second_may_end = threading.Event()
        self.first: list[str] = []

    async def pause(self) -> None:
        await asyncio.to_thread(self.went_on.wait, 20)

    async def be_second(self, ctx: Context) -> str:
        self.second_runs.set()
        await asyncio.to_thread(self.second_may_end.wait, 20)
        return "second"

    async def supersede(self) -> JobHandle:
        """A job whose first attempt is over without knowing it, and whose second runs."""
        await self.harness.start_worker()
        job = await self.harness.lw.submit("job")
        await self.harness.running(job)
        self.harness.lapse(job)
        await wait_until(self.second_runs.is_set)
        return job

    async def stands(self, job: JobHandle) -> None:
        self.second_may_end.set()
        ended = await self.harness.ended(job)
        assert (ended.status, ended.result, ended.attempt) == ("completed", "second", 2)
        assert [a.outcome for a in ended.attempts] == ["lost", "completed"]
        assert ended.attempts[0].error is not None
        assert ended.attempts[0].error.type == "WorkerLost"
        assert ended.retries == 1
        await wait_until(self.harness.holds_nothing)


@pytest.fixture
def schedule(harness: WorkerHarness) -> Schedule:
    return Schedule(harness)


def told_superseded(caplog: pytest.LogCaptureFixture) -> Callable[[], bool]:
    return lambda: any("superseded" in record.getMessage() for record in caplog.records)


def taken_away(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Log lines about attempts that are stopped while they run."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.WARNING and "taken away" in record.getMessage()
    ]


ENDS: dict[str, Exception | None] = {
    "finish": None,
    "fail": ValueError("zombie"),
    "snooze": Snooze(0),
    "cancel": Cancel("zombie"),
}


@pytest.mark.parametrize("end", ENDS)
async def test_no_end_of_a_superseded_attempt_is_accepted(
    schedule: Schedule, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    @schedule.harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> str:
        if ctx.attempt == 2:
            return await schedule.be_second(ctx)
        await schedule.pause()
        if (error := ENDS[end]) is not None:
            raise error
        return "zombie"

    submitted = await schedule.supersede()
    schedule.went_on.set()
    await wait_until(told_superseded(caplog))
    await schedule.stands(submitted)


async def test_release_by_a_superseded_attempt_is_void(schedule: Schedule) -> None:
    """The worker of the first attempt shuts down while the second runs elsewhere."""

    @schedule.harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> str:
        if ctx.attempt == 2:
            return await schedule.be_second(ctx)
        await asyncio.Event().wait()
        return "zombie"

    harness = schedule.harness
    first = await harness.start_worker_with({"concurrency": 1})
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    await harness.start_worker()
    harness.lapse(submitted)
    await wait_until(schedule.second_runs.is_set)
    await first.stop(0.0)
    assert harness.status(submitted) == "running"
    await schedule.stands(submitted)


async def test_progress_of_superseded_attempt_is_refused_and_handler_stopped(
    schedule: Schedule,
) -> None:
    @schedule.harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> str:
        if ctx.attempt == 2:
            return await schedule.be_second(ctx)
        await schedule.pause()
        await ctx.progress(99, 100, "zombie")
        try:
            await asyncio.Event().wait()
        finally:
            schedule.first.append("stopped")
        return "zombie"

    submitted = await schedule.supersede()
    schedule.went_on.set()
    await wait_until(lambda: schedule.first == ["stopped"])
    assert schedule.harness.one("select count(*) from laneway.progress") == 0
    await schedule.stands(submitted)


async def test_log_of_superseded_attempt_is_refused_and_handler_stopped(
    schedule: Schedule,
) -> None:
    @schedule.harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> str:
        if ctx.attempt == 2:
            return await schedule.be_second(ctx)
        await schedule.pause()
        ctx.log("zombie")
        try:
            await asyncio.Event().wait()
        finally:
            schedule.first.append("stopped")
        return "zombie"

    submitted = await schedule.supersede()
    schedule.went_on.set()
    await wait_until(lambda: schedule.first == ["stopped"])
    assert schedule.harness.one("select count(*) from laneway.logs") == 0
    await schedule.stands(submitted)


async def test_checkpoint_of_superseded_attempt_raises_stale_attempt(
    schedule: Schedule, caplog: pytest.LogCaptureFixture
) -> None:
    @schedule.harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> str:
        if ctx.attempt == 2:
            await ctx.save("second")
            return await schedule.be_second(ctx)
        await schedule.pause()
        try:
            await ctx.save("zombie")
        except StaleAttempt:
            schedule.first.append("refused")
            raise
        return "zombie"

    submitted = await schedule.supersede()
    schedule.went_on.set()
    await wait_until(lambda: schedule.first == ["refused"])
    await schedule.stands(submitted)
    assert (await submitted.get()).checkpoint == "second"
    assert len(taken_away(caplog)) == 1
    assert not told_superseded(caplog)()


async def test_next_write_in_thread_of_superseded_attempt_raises(
    schedule: Schedule,
) -> None:
    @schedule.harness.lw.handler("job", retry=SOON)
    def job(ctx: SyncContext) -> str:
        if ctx.attempt == 2:
            schedule.second_runs.set()
            schedule.second_may_end.wait(120)
            return "second"
        schedule.went_on.wait(120)
        try:
            ctx.save("zombie")
        except StaleAttempt:
            schedule.first.append("refused")
            # Now it should stop as well: the next call ends it.
            while True:
                ctx.progress(1)
        return "zombie"

    submitted = await schedule.supersede()
    (worker,) = schedule.harness.workers
    schedule.went_on.set()
    await wait_until(lambda: schedule.first == ["refused"])
    await wait_until(lambda: worker.capacity.in_use == 1)
    await schedule.stands(submitted)
    assert (await submitted.get()).checkpoint is None


async def test_heartbeat_stops_superseded_handler_and_logs_why(
    schedule: Schedule, caplog: pytest.LogCaptureFixture
) -> None:
    @schedule.harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> str:
        if ctx.attempt == 2:
            return await schedule.be_second(ctx)
        try:
            await asyncio.Event().wait()
        finally:
            schedule.first.append("stopped")
        return "zombie"

    # Long enough for a renewal on a busy machine: a late one would be another reason to stop.
    schedule.harness.lane("default", lease_seconds=15)
    submitted = await schedule.supersede()
    await wait_until(lambda: schedule.first == ["stopped"], timeout=60)
    await schedule.stands(submitted)
    assert taken_away(caplog) == [
        f"job {submitted.id}: attempt 1 was taken away: the job was reclaimed or has ended"
    ]


async def test_silent_database_fences_the_handler_when_its_lease_is_over(
    schedule: Schedule, caplog: pytest.LogCaptureFixture
) -> None:
    """A renewal that hangs does not count: the lease is lost by the worker's own clock."""

    @schedule.harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> str:
        if ctx.attempt == 2:
            return await schedule.be_second(ctx)
        try:
            await asyncio.Event().wait()
        finally:
            schedule.first.append("stopped")
        return "zombie"

    harness = schedule.harness
    harness.lane("default", lease_seconds=2)
    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    # Every renewal now waits for a lock, for as long as this transaction is open.
    with harness.conn.transaction():
        harness.do("lock table laneway.lease in access exclusive mode")
        await wait_until(lambda: schedule.first == ["stopped"])
    await wait_until(schedule.second_runs.is_set)
    await schedule.stands(submitted)
    assert taken_away(caplog) == [
        f"job {submitted.id}: attempt 1 was taken away: the lease could not be renewed in time"
    ]
