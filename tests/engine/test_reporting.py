"""Progress, checkpoints and log lines are stored for readers and for the next attempt."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from laneway import Context, SyncContext
from laneway.domain.codec import to_json
from laneway.engine.run import checkpoint
from laneway.errors import InvalidInput
from laneway.store.statement import Statement
from tests.support.worker_command import WorkerCommand
from tests.support.worker_harness import PATIENCE, SOON, WorkerHarness, wait_until


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_progress_is_there_while_the_job_runs(
    either_harness: WorkerHarness, isolation: str
) -> None:
    harness = either_harness
    let_go = threading.Event()

    @harness.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        await ctx.progress(1, 4, "reading", stage="one")
        await ctx.progress(2)
        await asyncio.to_thread(let_go.wait, 20)

    @harness.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        ctx.progress(1, 4, "reading", stage="one")
        ctx.progress(2)
        let_go.wait(120)

    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_job")
    await wait_until(lambda: harness.rows("select 1 from laneway.progress"))
    running = await job.get()
    assert running.progress is not None
    assert to_json(running.progress) == {
        "stage": "one",
        "done": 2,
        "total": 4,
        "percent": 50,
        "message": "reading",
    }
    assert running.last_progress_at is not None
    let_go.set()
    await job.wait(60)
    assert (await job.get()).progress == running.progress


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_checkpoint_is_durable_when_save_returns(
    harness: WorkerHarness, isolation: str
) -> None:
    seen: list[Any] = []

    def look() -> Any:
        return harness.one("select checkpoint from laneway.progress")

    @harness.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        for n in range(3):
            await ctx.save({"n": n})
            seen.append(look())

    @harness.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        for n in range(3):
            ctx.save({"n": n})
            seen.append(look())

    await harness.start_worker()
    await (await harness.lw.submit(f"{isolation}_job")).wait(60)
    assert seen == [{"n": 0}, {"n": 1}, {"n": 2}]


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_track_continues_after_the_last_item_in_a_second_attempt(
    harness: WorkerHarness, isolation: str
) -> None:
    seen: list[tuple[int, int]] = []

    @harness.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> Any:
        async for page in ctx.track(range(10), durable=True):
            if page == 6 and ctx.attempt == 1:
                raise ValueError("half way")
            seen.append((ctx.attempt, page))
        return ctx.checkpoint

    @harness.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> Any:
        for page in ctx.track(range(10), durable=True):
            if page == 6 and ctx.attempt == 1:
                raise ValueError("half way")
            seen.append((ctx.attempt, page))
        return ctx.checkpoint

    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_job")
    await job.wait(60)
    assert seen == [(1, n) for n in range(6)] + [(2, n) for n in range(6, 10)]
    ended = await job.get()
    assert ended.progress is not None
    assert (ended.progress.done, ended.progress.total) == (10, 10)


async def test_two_tracks_and_a_saved_state_do_not_mix(harness: WorkerHarness) -> None:
    seen: list[str] = []

    @harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> Any:
        if ctx.attempt == 1:
            await ctx.save({"mine": 1})
        assert ctx.checkpoint == {"mine": 1}
        firsts = ctx.track(range(2), name="first", durable=True)
        seen.extend([f"first {n}" async for n in firsts])
        async for n in ctx.track(range(3), name="second", durable=True):
            if n == 1 and ctx.attempt == 1:
                raise ValueError
            seen.append(f"second {n}")
        return ctx.checkpoint

    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    assert await submitted.wait(60) == {"mine": 1}
    assert seen == ["first 0", "first 1", "second 0", "second 1", "second 2"]


async def test_attempt_after_kill_9_continues_from_the_checkpoint(harness: WorkerHarness) -> None:
    started = asyncio.Event()
    harness.lane("default", lease_seconds=2)
    with WorkerCommand(harness.dsn) as command:
        job = await harness.lw.submit("wait")
        await wait_until(lambda: harness.rows("select 1 from laneway.progress"))
        command.kill()

    @harness.lw.handler("wait", retry=SOON)
    async def wait(ctx: Context) -> Any:
        started.set()
        return ctx.checkpoint

    await harness.start_worker()
    assert await job.wait(60) == command.process.pid
    ended = await job.get()
    assert (ended.attempt, ended.retries) == (2, 1)
    assert [a.outcome for a in ended.attempts] == ["lost", "completed"]
    assert ended.attempts[0].error is not None
    assert "worker lost" in ended.attempts[0].error.message


async def test_log_lines_are_kept_with_their_attempt_in_order(harness: WorkerHarness) -> None:
    @harness.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> None:
        ctx.log(f"attempt {ctx.attempt}")
        ctx.log.warning("with a \x00 NUL and a \ud800 surrogate")
        if ctx.attempt == 1:
            raise ValueError
        ctx.log.error("x" * 100_000)

    @harness.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> None:
        ctx.log(f"attempt {ctx.attempt}")
        ctx.log.warning("with a \x00 NUL and a \ud800 surrogate")
        if ctx.attempt == 1:
            raise ValueError
        ctx.log.error("x" * 100_000)

    await harness.start_worker()
    for isolation in ("async", "thread"):
        job = await harness.lw.submit(f"{isolation}_job")
        ended = await harness.ended(job)
        first, second = ended.attempts
        assert [line.message for line in first.log][:1] == ["attempt 1"]
        assert [line.level for line in second.log] == ["info", "warning", "error"]
        assert second.log[0].at <= second.log[2].at
        assert len(second.log[2].message) < 10_000
        assert first.worker == second.worker == harness.workers[0].name


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_however_many_lines_a_handler_logs_all_are_kept(
    harness: WorkerHarness, isolation: str
) -> None:
    @harness.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        for n in range(5000):
            ctx.log(n)

    @harness.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        for n in range(5000):
            ctx.log(n)

    await harness.start_worker()
    job = await harness.lw.submit(f"{isolation}_job")
    await job.wait(60)
    (attempt,) = (await job.get()).attempts
    kept = harness.rows("select message from laneway.logs order by line")
    assert kept == [(str(n),) for n in range(5000)]
    assert attempt.log_lines == 5000
    assert [line.message for line in attempt.log] == [str(n) for n in range(4800, 5000)]


async def test_many_reports_go_to_the_database_together(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        async for _ in ctx.track(range(3000)):
            pass

    worker = await harness.start_worker()
    await wait_until(lambda: worker.heartbeat.is_ready)
    run, sent = worker.databases.rest.run, 0

    async def counted(statement: Statement[Any]) -> Any:
        nonlocal sent
        sent += statement.name == "leases/report_progress"
        return await run(statement)

    monkeypatch.setattr(worker.databases.rest, "run", counted)
    began = time.monotonic()
    jobs = await harness.lw.submit_many([("job", {})] * 10)
    await wait_until(lambda: harness.count("completed") == len(jobs))
    # Of 30,000 reports: one each half second, and what is left of each job at its end.
    assert sent <= 2 * (time.monotonic() - began) + 3 * len(jobs)
    rows = harness.rows("select done, total from laneway.progress")
    assert rows == [(3000, 3000)] * 10


async def test_report_of_a_locked_row_is_stored_afterwards(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator's transaction on the lease is open; asking again must not become a storm."""
    go_on = asyncio.Event()

    @harness.lw.handler("job")
    async def job(ctx: Context) -> str:
        await go_on.wait()
        await ctx.save("held up")
        return "saved"

    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    run, sent = worker.databases.rest.run, 0

    async def counted(statement: Statement[Any]) -> Any:
        nonlocal sent
        sent += statement.name == "leases/report_progress"
        return await run(statement)

    monkeypatch.setattr(worker.databases.rest, "run", counted)
    with harness.conn.transaction():
        harness.do("select 1 from laneway.lease for update")
        go_on.set()
        await wait_until(lambda: sent >= 5)
        assert harness.rows("select 1 from laneway.progress") == []
    assert await submitted.wait(60) == "saved"
    assert (await submitted.get()).checkpoint == "held up"
    assert sent < 100


async def test_invalid_report_is_refused_at_its_call(harness: WorkerHarness) -> None:
    refused: list[str] = []

    @harness.lw.handler("job")
    async def job(ctx: Context) -> str:
        calls = [
            ctx.progress(float("nan")),
            ctx.progress(1e308, 1),
            ctx.progress(5, 10**400),
            ctx.progress("much"),  # type: ignore[arg-type]
            ctx.save(float("inf")),
            ctx.save({1, 2}),
        ]
        for one in calls:
            try:
                await one
            except InvalidInput as error:
                refused.append(error.field)
        return "went on"

    await harness.start_worker()
    assert await (await harness.lw.submit("job")).wait(60) == "went on"
    assert refused == ["done", "done", "total", "done", "checkpoint", "checkpoint"]


async def test_smallest_and_largest_progress_can_be_shown(harness: WorkerHarness) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        await ctx.progress(1e100, 5e-324)
        await ctx.progress(5e-324, 1e100)

    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await submitted.wait(60)
    assert (await submitted.get()).progress is not None


async def test_report_that_postgresql_refuses_spares_others_and_the_outcome(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode(value: Any, **rest: Any) -> str:
        # What no check of ours lets through, as if one had a hole.
        (n,) = value[checkpoint.TRACKED]
        return '"\\u0000"' if n == "3" else str(n)

    monkeypatch.setattr(checkpoint, "encode", encode)

    @harness.lw.handler("job")
    async def job(ctx: Context, n: int) -> int:
        async for _ in ctx.track([n], name=f"{n}"):
            pass
        return n

    worker = await harness.start_worker()
    jobs = await harness.lw.submit_many([("job", {"n": n}) for n in range(8)])
    await wait_until(lambda: harness.count("completed") == len(jobs))
    saved = {row[0] for row in harness.rows("select checkpoint from laneway.progress")}
    assert saved == {0, 1, 2, 4, 5, 6, 7}
    await wait_until(lambda: worker.capacity.in_use == 0)


async def test_thread_that_saves_while_its_worker_stops_does_not_hang(
    harness: WorkerHarness,
) -> None:
    began, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    @harness.lw.handler("job")
    def job(ctx: SyncContext) -> None:
        began.set()
        try:
            for _ in ctx.track([1], durable=True):
                go_on.wait(PATIENCE)
        finally:
            ended.set()

    worker = await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await wait_until(began.is_set)
    await worker.stop(0.0)
    go_on.set()
    await wait_until(ended.is_set)
    assert harness.status(submitted) == "approved"


async def test_no_progress_for_too_long_is_taken_back_where_the_type_asks_for_it(
    harness: WorkerHarness,
) -> None:
    """Heartbeats alone do not keep such a job: its work has to move."""
    stopped: list[int] = []

    @harness.lw.handler("job", stale="progress", retry=SOON)
    async def job(ctx: Context) -> str:
        if ctx.attempt == 2:
            return "moved"
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(ctx.attempt)
        return "never"

    harness.lane("default", lease_seconds=2, stale_timeout_minutes=1)
    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    await harness.running(submitted)
    harness.do("update laneway.lease set claimed_at = claimed_at - interval '61 seconds'")
    assert await submitted.wait(60) == "moved"
    ended = await submitted.get()
    assert [a.outcome for a in ended.attempts] == ["stalled", "completed"]
    assert ended.retries == 1
    await wait_until(lambda: stopped == [1])
