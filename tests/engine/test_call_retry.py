"""Calls tried again inside a handler: paused, bounded, and free of charge."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import pytest

from laneway import Context, Retry, RetryPolicy, Snooze, SyncContext
from laneway.engine.run.call_retry import CallRetryOptions, retry_after
from laneway.errors import InvalidInput, JobFailed
from tests.engine import child_features
from tests.support.worker_harness import SOON, WorkerHarness, wait_until


class Busy(Exception):
    """A refused call, as HTTP clients raise it."""

    def __init__(self, header: str | None) -> None:
        headers = {} if header is None else {"Retry-After": header}
        self.response = SimpleNamespace(headers=headers)


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_call_is_tried_again_without_a_charge(harness: WorkerHarness, isolation: str) -> None:
    calls: list[str] = []

    def flaky(text: str, *, end: str) -> str:
        calls.append(text)
        if len(calls) < 3:
            raise ConnectionError("busy")
        return text + end

    async def flaky_async(text: str, *, end: str) -> str:
        return flaky(text, end=end)

    @harness.lw.handler("async_job", max_retries=0)
    async def async_job(ctx: Context) -> str:
        return str(await ctx.retry(flaky_async, "done", end="!", policy=SOON))

    @harness.lw.handler("thread_job", max_retries=0)
    def thread_job(ctx: SyncContext) -> str:
        return ctx.retry(flaky, "done", end="!", policy=SOON)

    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_job")
    assert await job.wait(60) == "done!"
    found = await job.get()
    assert (len(calls), found.attempt, found.retries) == (3, 1, 0)
    (attempt,) = found.attempts
    assert "try 1 of 5 failed with ConnectionError" in attempt.log[0].message


async def test_call_is_tried_again_in_a_child_process(harness: WorkerHarness) -> None:
    await child_features.adopted_by(harness)
    job = await harness.lw.submit("child_retry")
    assert await job.wait(60) == 3


async def test_last_error_of_a_call_fails_the_attempt(harness: WorkerHarness) -> None:
    calls: list[int] = []

    def broken() -> None:
        calls.append(1)
        raise ValueError("never")

    @harness.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> None:
        await ctx.retry(broken, tries=2, policy=SOON)

    await harness.start_worker()
    handle = await harness.lw.submit("job")
    with pytest.raises(JobFailed, match="never"):
        await handle.wait(60)
    assert len(calls) == 2


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_cancel_ends_the_pause_between_tries(harness: WorkerHarness, isolation: str) -> None:
    tried = threading.Event()
    hour = RetryPolicy(base=3600, cap=3600)

    def broken() -> None:
        tried.set()
        raise ConnectionError("busy")

    @harness.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        await ctx.retry(broken, policy=hour)

    @harness.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        ctx.retry(broken, policy=hour)

    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_job")
    await asyncio.to_thread(tried.wait, 30)
    await job.cancel()
    await wait_until(lambda: harness.status(job) == "cancelled")


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_job_that_waits_for_its_next_try_is_not_stalled(
    harness: WorkerHarness, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.engine.run.call_retry.MOVE_S", 0.05)
    hour = RetryPolicy(base=3600, cap=3600)

    def broken() -> None:
        raise ConnectionError("busy")

    @harness.lw.handler("async_job", stale="progress")
    async def async_job(ctx: Context) -> None:
        await ctx.retry(broken, policy=hour)

    @harness.lw.handler("thread_job", stale="progress")
    def thread_job(ctx: SyncContext) -> None:
        ctx.retry(broken, policy=hour)

    await harness.start_worker()
    await harness.lw.submit(f"{isolation}_job")
    moved: set[Any] = set()

    def has_moved_on() -> bool:
        moved.update(harness.rows("select last_progress_at from laneway.lease"))
        return len(moved - {(None,)}) >= 3

    await wait_until(has_moved_on)


# -- how long -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3, 9])
def test_pause_grows_to_a_minute_and_is_spread(n: int) -> None:
    waits = [CallRetryOptions(tries=10).wait_s(ValueError(), n) for _ in range(50)]
    usual = min(60, 2 ** (n - 1))
    assert all(wait is not None and 0.8 * usual <= wait <= 1.2 * usual for wait in waits)
    assert len(set(waits)) > 1


@pytest.mark.parametrize(
    "error,seconds",
    [
        (Busy("7"), 7),
        (Busy("0"), 0),
        (Busy("100000"), 3600),
        (Busy("-3"), 0),
        (Busy("soon"), None),
        (Busy("nan"), None),
        (Busy(None), None),
        (Retry(after=5), 5),
        (ValueError(), None),
    ],
)
def test_retry_after_is_read_from_a_refused_call(error: Exception, seconds: float | None) -> None:
    assert retry_after(error) == seconds


def test_date_in_the_header_counts_from_now() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    seconds = retry_after(Busy(later))
    assert seconds is not None
    assert 80 < seconds <= 100


def test_pause_is_never_shorter_than_asked_for() -> None:
    for _ in range(50):
        wait = CallRetryOptions().wait_s(Busy("30"), 1)
        assert wait is not None
        assert 30 <= wait <= 36


@pytest.mark.parametrize(
    "error,options",
    [
        (Snooze(1), {}),
        (InvalidInput("x", "y"), {}),
        (ValueError(), {"on": ConnectionError}),
        (ValueError(), {"on": (ConnectionError, OSError)}),
    ],
)
def test_final_errors_are_not_tried_again(error: Exception, options: dict[str, Any]) -> None:
    assert CallRetryOptions(**options).wait_s(error, 1) is None


@pytest.mark.parametrize("tries", [0, -1, 1.5, True])
def test_tries_are_checked(tries: Any) -> None:
    with pytest.raises(InvalidInput, match="tries"):
        CallRetryOptions(tries=tries)
