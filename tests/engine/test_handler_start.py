"""A handler's time begins when it is called, not when its job is claimed."""

from __future__ import annotations

import asyncio
import threading
import time

from laneway import Context, SyncContext
from tests.engine.workshop import Workshop, until


async def test_timeout_counts_from_start_of_async_handler(shop: Workshop) -> None:
    @shop.lw.handler("blocking", timeout=5)
    async def blocking(ctx: Context) -> None:
        time.sleep(0.3)  # noqa: ASYNC251 -- handlers do block the loop
        await asyncio.sleep(0)

    jobs = await shop.lw.submit_many([("blocking", {}, {}) for _ in range(20)])
    await shop.hire()
    await until(lambda: shop.one("select count(*) from laneway.outcome") == len(jobs))
    assert shop.rows("select distinct status, attempt, error from laneway.outcome") == [
        ("completed", 1, None)
    ]


async def test_timeout_still_stops_handler_that_waits(shop: Workshop) -> None:
    @shop.lw.handler("waiting", timeout=0.1)
    async def waiting(ctx: Context) -> None:
        await asyncio.Event().wait()

    await shop.hire()
    ended = await shop.ended(await shop.lw.submit("waiting", max_retries=0))
    assert ended.error is not None
    assert ended.error.type == "Timeout"


async def test_thread_has_its_timeout_while_the_loop_is_blocked(shop: Workshop) -> None:
    """Time that the loop was blocked before the thread began is not the thread's."""
    began = threading.Event()

    @shop.lw.handler("thread", timeout=60)
    def thread(ctx: SyncContext) -> float:
        began.set()
        return time.monotonic()

    await shop.hire()
    job = await shop.lw.submit("thread")
    await until(began.is_set)
    ended = await shop.ended(job)
    assert ended.status == "completed"
    assert ended.started_at is not None
    assert ended.claimed_at is not None
    assert ended.started_at >= ended.claimed_at
