"""Claims answered late, jobs that cannot be started, and workers that must not start."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from laneway import Context, SyncContext
from laneway.config.settings import Settings
from laneway.engine.claim import lane_loop
from tests.support.worker_harness import SOON, WorkerHarness, wait_until


async def test_job_that_cannot_be_started_fails_alone(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    @harness.lw.handler("threaded", max_retries=0, retry=SOON)
    def threaded(ctx: SyncContext, n: int) -> int:
        started.append(n)
        return n

    start, calls = threading.Thread.start, 0

    def exhausted(thread: threading.Thread) -> None:
        nonlocal calls
        if thread.name.startswith("laneway-"):
            calls += 1
            if calls == 2:
                raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", exhausted)
    jobs = await harness.lw.submit_many([("threaded", {"n": n}) for n in range(5)])
    worker = await harness.start_worker()
    ended = [await wait_until(partial(_ended, harness, job)) for job in jobs]
    failed = [job for job in ended if job.status == "failed"]
    assert len(failed) == 1
    assert failed[0].error is not None
    assert "new thread" in failed[0].error.message
    assert len(started) == 4
    await wait_until(lambda: worker.capacity.in_use == 0)


async def _ended(harness: WorkerHarness, job: Any) -> Any:
    seen = await harness.lw.get(job.id)
    return seen if seen.finished_at else None


async def test_claim_answered_after_its_lease_is_not_run(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []

    @harness.lw.handler("late")
    async def late(ctx: Context) -> int:
        attempts.append(ctx.attempt)
        return ctx.attempt

    harness.conn.execute("update laneway.worker_lanes set lease_seconds = 2 where name = 'default'")
    worker = await harness.start_worker()
    run, held_up = worker.databases.claim.run, False

    async def slowly(statement: Any) -> Any:
        nonlocal held_up
        answer = await run(statement)
        if getattr(answer, "assignments", None) and not held_up:
            held_up = True
            # What a handler that blocks the event loop does to an answer on its way.
            _block(2.2)
        return answer

    monkeypatch.setattr(worker.databases.claim, "run", slowly)
    job = await harness.lw.submit("late")
    assert await job.wait(60) == 2
    assert attempts == [2]


def _block(seconds: float) -> None:
    time.sleep(seconds)


async def test_worker_switched_off_starts_nothing(
    make_harness: Callable[..., WorkerHarness], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANEWAY_WORKER", "off")
    harness = make_harness()

    @harness.lw.handler("never")
    async def never(ctx: Context) -> None: ...

    async with harness.lw.worker() as worker:
        assert not worker.is_running
        assert harness.conn.execute("select count(*) from laneway.workers").fetchone() == (0,)


async def test_lanes_from_the_settings_leave_a_type_where_its_row_has_it(
    make_harness: Callable[..., WorkerHarness],
) -> None:
    lanes = Settings.load(
        lanes='[{"name": "mine", "job_types": ["ingestion", "novel"], "max_slots": 7}]'
    ).lanes
    harness = make_harness(lanes=lanes)

    @harness.lw.handler("novel")
    async def novel(ctx: Context) -> None: ...

    await harness.start_worker()
    rows = harness.conn.execute(
        "select name, job_types, max_slots from laneway.worker_lanes"
        " where name in ('mine', 'interactive') order by name"
    ).fetchall()
    assert rows == [
        ("interactive", ["ingestion", "ingest_image", "polarity"], 2),
        ("mine", ["novel"], 7),
    ]


async def test_full_completer_holds_claims_back(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    @harness.lw.handler("quick")
    async def quick(ctx: Context) -> None: ...

    worker = await harness.start_worker()
    run, may_settle = worker.databases.settle.run, asyncio.Event()

    async def held_up(statement: Any) -> Any:
        await may_settle.wait()
        return await run(statement)

    monkeypatch.setattr(worker.databases.settle, "run", held_up)
    monkeypatch.setattr(lane_loop, "MAX_UNSETTLED", 0)
    ended = await harness.lw.submit("quick")
    await wait_until(lambda: worker.completer.backlog == 1)
    waiting = await harness.lw.submit("quick")
    assert await worker.loops["default"].run_once() == lane_loop.NOT_READY_S
    assert [harness.status(job) for job in (ended, waiting)] == ["running", "approved"]
    may_settle.set()
    for job in (ended, waiting):
        await job.wait(60)
