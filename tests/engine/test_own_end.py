"""An exception of a handler ends its own job, not other jobs and not the worker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from laneway import Context, SyncContext
from tests.engine import isolation_handlers
from tests.engine.odd_exceptions import ODD
from tests.support.worker_harness import WorkerHarness, wait_until

NEIGHBOURS = 20


def _register(harness: WorkerHarness) -> None:
    @harness.lw.handler("odd_async")
    async def odd_async(ctx: Context, how: str, waits: bool) -> None:
        if waits:
            await asyncio.sleep(0)
        raise ODD[how]()

    @harness.lw.handler("odd_thread")
    def odd_thread(ctx: SyncContext, how: str) -> None:
        raise ODD[how]()

    @harness.lw.handler("neighbour")
    async def neighbour(ctx: Context, waits: bool) -> str:
        if waits:
            await asyncio.sleep(0.01)
        return "done"


def _ends(harness: WorkerHarness) -> list[tuple[Any, ...]]:
    return harness.rows(
        "select job_type, status, count(*), max(attempt) from laneway.outcome"
        " group by 1, 2 order by 1"
    )


@pytest.mark.parametrize("waits", [False, True])
async def test_odd_exception_of_async_handler_ends_its_job_only(
    harness: WorkerHarness, waits: bool
) -> None:
    _register(harness)
    jobs: list[Any] = []
    for how in ODD:
        jobs.append(("neighbour", {"waits": False}, {}))
        jobs.append(("odd_async", {"how": how, "waits": waits}, {"max_retries": 0}))
        jobs.append(("neighbour", {"waits": True}, {}))
    await harness.lw.submit_many(jobs)
    worker = await harness.start_worker()
    await wait_until(lambda: harness.one("select count(*) from laneway.outcome") == len(jobs))
    assert _ends(harness) == [
        ("neighbour", "completed", 2 * len(ODD), 1),
        ("odd_async", "failed", len(ODD), 1),
    ]
    for (error,) in harness.rows("select error from laneway.outcome where job_type = 'odd_async'"):
        assert error["type"]
        assert 0 < len(error["message"]) <= 4000
        assert len(error.get("traceback", "")) <= 17_000
    for how, kind, broken in (
        ("text exits", "Exits", "SystemExit"),
        ("text cancels", "Cancels", "CancelledError"),
    ):
        error = harness.one(
            "select o.error from laneway.outcome o join laneway.jobs j using (seq)"
            " where j.payload ->> 'how' = %s",
            how,
        )
        assert (error["type"], error["message"]) == (kind, f"its text could not be read: {broken}")
    await wait_until(lambda: worker.capacity.in_use == 0)


async def test_odd_exception_of_thread_ends_its_job_only(harness: WorkerHarness) -> None:
    _register(harness)
    worker = await harness.start_worker()
    await harness.lw.submit_many([("odd_thread", {"how": how}, {"max_retries": 0}) for how in ODD])
    await wait_until(lambda: harness.one("select count(*) from laneway.outcome") == len(ODD))
    assert _ends(harness) == [("odd_thread", "failed", len(ODD), 1)]
    after = await harness.lw.submit("neighbour", {"waits": False})
    assert await after.wait(60) == "done"
    await wait_until(lambda: worker.capacity.in_use == 0)


async def test_odd_exceptions_of_child_process_end_their_jobs_only(harness: WorkerHarness) -> None:
    harness.lw.handlers.add(isolation_handlers.lw.handlers["process_odd"])
    await harness.start_worker()
    for how in ("GeneratorExit", "text exits", "class exits", "cause exits", "long chain"):
        job = await harness.lw.submit("process_odd", {"how": how}, max_retries=0)
        ended = await harness.ended(job)
        assert ended.status == "failed", how
        assert ended.error is not None, how
        assert ended.error.type != "ChildDied", how
