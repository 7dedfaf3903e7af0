"""A handler's time begins when it is called, not when its job is claimed."""

from __future__ import annotations

import asyncio
import threading
import time

from laneway import Context, SyncContext
from tests.support.worker_harness import WorkerHarness, wait_until


async def test_timeout_counts_from_start_of_async_handler(harness: WorkerHarness) -> None:
    @harness.lw.handler("blocking", timeout=5)
    async def blocking(ctx: Context) -> None:
        time.sleep(0.3)  # noqa: ASYNC251 -- handlers do block the loop
        await asyncio.sleep(0)

    jobs = await harness.lw.submit_many([("blocking", {}, {}) for _ in range(20)])
    await harness.start_worker()
    await wait_until(lambda: harness.one("select count(*) from laneway.outcome") == len(jobs))
    assert harness.rows("select distinct status, attempt, error from laneway.outcome") == [
        ("completed", 1, None)
    ]


async def test_timeout_still_stops_handler_that_waits(harness: WorkerHarness) -> None:
    @harness.lw.handler("waiting", timeout=0.1)
    async def waiting(ctx: Context) -> None:
        await asyncio.Event().wait()

    await harness.start_worker()
    ended = await harness.ended(await harness.lw.submit("waiting", max_retries=0))
    assert ended.error is not None
    assert ended.error.type == "Timeout"


async def test_thread_has_its_timeout_while_the_loop_is_blocked(harness: WorkerHarness) -> None:
    """Time that the loop was blocked before the thread began is not the thread's."""
    began = threading.Event()

    @harness.lw.handler("thread", timeout=60)
    def thread(ctx: SyncContext) -> float:
        began.set()
        return time.monotonic()

    await harness.start_worker()
    job = await harness.lw.submit("thread")
    await wait_until(began.is_set)
    ended = await harness.ended(job)
    assert ended.status == "completed"
    assert ended.started_at is not None
    assert ended.claimed_at is not None
    assert ended.started_at >= ended.claimed_at
