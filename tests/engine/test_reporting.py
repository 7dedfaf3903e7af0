"""Progress, checkpoints and log lines are stored for readers and for the next attempt."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from laneway import Context, SyncContext
from laneway.domain.codec import to_json
from laneway.engine.run import context
from laneway.errors import InvalidInput
from laneway.store.statement import Statement
from tests.engine.crew import Crew
from tests.engine.workshop import PATIENCE, SOON, Workshop, until


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_progress_is_there_while_the_job_runs(either_shop: Workshop, isolation: str) -> None:
    shop = either_shop
    let_go = threading.Event()

    @shop.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        await ctx.progress(1, 4, "reading", stage="one")
        await ctx.progress(2)
        await asyncio.to_thread(let_go.wait, 20)

    @shop.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        ctx.progress(1, 4, "reading", stage="one")
        ctx.progress(2)
        let_go.wait(120)

    await shop.hire()
    job = await shop.lw.submit(f"{isolation}_job")
    await until(lambda: shop.rows("select 1 from laneway.progress"))
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
async def test_a_checkpoint_is_durable_when_save_returns(shop: Workshop, isolation: str) -> None:
    seen: list[Any] = []

    def look() -> Any:
        return shop.one("select checkpoint from laneway.progress")

    @shop.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        for n in range(3):
            await ctx.save({"n": n})
            seen.append(look())

    @shop.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        for n in range(3):
            ctx.save({"n": n})
            seen.append(look())

    await shop.hire()
    await (await shop.lw.submit(f"{isolation}_job")).wait(60)
    assert seen == [{"n": 0}, {"n": 1}, {"n": 2}]


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_track_continues_after_the_last_item_in_a_second_attempt(
    shop: Workshop, isolation: str
) -> None:
    seen: list[tuple[int, int]] = []

    @shop.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> Any:
        async for page in ctx.track(range(10), durable=True):
            if page == 6 and ctx.attempt == 1:
                raise ValueError("half way")
            seen.append((ctx.attempt, page))
        return ctx.checkpoint

    @shop.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> Any:
        for page in ctx.track(range(10), durable=True):
            if page == 6 and ctx.attempt == 1:
                raise ValueError("half way")
            seen.append((ctx.attempt, page))
        return ctx.checkpoint

    await shop.hire()
    job = await shop.lw.submit(f"{isolation}_job")
    await job.wait(60)
    assert seen == [(1, n) for n in range(6)] + [(2, n) for n in range(6, 10)]
    ended = await job.get()
    assert ended.progress is not None
    assert (ended.progress.done, ended.progress.total) == (10, 10)


async def test_two_tracks_and_a_saved_state_do_not_mix(shop: Workshop) -> None:
    seen: list[str] = []

    @shop.lw.handler("job", retry=SOON)
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

    await shop.hire()
    submitted = await shop.lw.submit("job")
    assert await submitted.wait(60) == {"mine": 1}
    assert seen == ["first 0", "first 1", "second 0", "second 1", "second 2"]


async def test_attempt_after_kill_9_continues_from_the_checkpoint(shop: Workshop) -> None:
    started = asyncio.Event()
    shop.lane("default", lease_seconds=2)
    with Crew(shop.dsn) as crew:
        job = await shop.lw.submit("wait")
        await until(lambda: shop.rows("select 1 from laneway.progress"))
        crew.kill()

    @shop.lw.handler("wait", retry=SOON)
    async def wait(ctx: Context) -> Any:
        started.set()
        return ctx.checkpoint

    await shop.hire()
    assert await job.wait(60) == crew.process.pid
    ended = await job.get()
    assert (ended.attempt, ended.retries) == (2, 1)
    assert [a.outcome for a in ended.attempts] == ["lost", "completed"]
    assert ended.attempts[0].error is not None
    assert "worker lost" in ended.attempts[0].error.message


async def test_log_lines_are_kept_with_their_attempt_in_order(shop: Workshop) -> None:
    @shop.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> None:
        ctx.log(f"attempt {ctx.attempt}")
        ctx.log.warning("with a \x00 NUL and a \ud800 surrogate")
        if ctx.attempt == 1:
            raise ValueError
        ctx.log.error("x" * 100_000)

    @shop.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> None:
        ctx.log(f"attempt {ctx.attempt}")
        ctx.log.warning("with a \x00 NUL and a \ud800 surrogate")
        if ctx.attempt == 1:
            raise ValueError
        ctx.log.error("x" * 100_000)

    await shop.hire()
    for isolation in ("async", "thread"):
        job = await shop.lw.submit(f"{isolation}_job")
        ended = await shop.ended(job)
        first, second = ended.attempts
        assert [line.message for line in first.log][:1] == ["attempt 1"]
        assert [line.level for line in second.log] == ["info", "warning", "error"]
        assert second.log[0].at <= second.log[2].at
        assert len(second.log[2].message) < 10_000
        assert first.worker == second.worker == shop.workers[0].name


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_however_many_lines_a_handler_logs_all_are_kept(
    shop: Workshop, isolation: str
) -> None:
    @shop.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        for n in range(5000):
            ctx.log(n)

    @shop.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        for n in range(5000):
            ctx.log(n)

    await shop.hire()
    job = await shop.lw.submit(f"{isolation}_job")
    await job.wait(60)
    (attempt,) = (await job.get()).attempts
    kept = shop.rows("select message from laneway.logs order by line")
    assert kept == [(str(n),) for n in range(5000)]
    assert attempt.log_lines == 5000
    assert [line.message for line in attempt.log] == [str(n) for n in range(4800, 5000)]


async def test_many_reports_go_to_the_database_together(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        async for _ in ctx.track(range(3000)):
            pass

    worker = await shop.hire()
    await until(lambda: worker.heartbeat.is_ready)
    run, sent = worker.databases.rest.run, 0

    async def counted(statement: Statement[Any]) -> Any:
        nonlocal sent
        sent += statement.name == "leases/report_progress"
        return await run(statement)

    monkeypatch.setattr(worker.databases.rest, "run", counted)
    began = time.monotonic()
    jobs = await shop.lw.submit_many([("job", {})] * 10)
    await until(lambda: shop.count("completed") == len(jobs))
    # Of 30,000 reports: one each half second, and what is left of each job at its end.
    assert sent <= 2 * (time.monotonic() - began) + 3 * len(jobs)
    rows = shop.rows("select done, total from laneway.progress")
    assert rows == [(3000, 3000)] * 10


async def test_report_of_a_locked_row_is_stored_afterwards(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator's transaction on the lease is open; asking again must not become a storm."""
    go_on = asyncio.Event()

    @shop.lw.handler("job")
    async def job(ctx: Context) -> str:
        await go_on.wait()
        await ctx.save("held up")
        return "saved"

    worker = await shop.hire()
    submitted = await shop.lw.submit("job")
    await shop.running(submitted)
    run, sent = worker.databases.rest.run, 0

    async def counted(statement: Statement[Any]) -> Any:
        nonlocal sent
        sent += statement.name == "leases/report_progress"
        return await run(statement)

    monkeypatch.setattr(worker.databases.rest, "run", counted)
    with shop.conn.transaction():
        shop.do("select 1 from laneway.lease for update")
        go_on.set()
        await until(lambda: sent >= 5)
        assert shop.rows("select 1 from laneway.progress") == []
    assert await submitted.wait(60) == "saved"
    assert (await submitted.get()).checkpoint == "held up"
    assert sent < 100


async def test_invalid_report_is_refused_at_its_call(shop: Workshop) -> None:
    refused: list[str] = []

    @shop.lw.handler("job")
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
        try:
            ctx.log("x", level="loud")
        except InvalidInput as error:
            refused.append(error.field)
        return "went on"

    await shop.hire()
    assert await (await shop.lw.submit("job")).wait(60) == "went on"
    assert refused == ["done", "done", "total", "done", "checkpoint", "checkpoint", "level"]


async def test_the_smallest_and_largest_progress_can_be_shown(shop: Workshop) -> None:
    @shop.lw.handler("job")
    async def job(ctx: Context) -> None:
        await ctx.progress(1e100, 5e-324)
        await ctx.progress(5e-324, 1e100)

    await shop.hire()
    submitted = await shop.lw.submit("job")
    await submitted.wait(60)
    assert (await submitted.get()).progress is not None


async def test_report_that_postgresql_refuses_spares_others_and_the_outcome(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode(value: Any, **rest: Any) -> str:
        # What no check of ours lets through, as if one had a hole.
        (n,) = value[context.TRACKED]
        return '"\\u0000"' if n == "3" else str(n)

    monkeypatch.setattr(context, "encode", encode)

    @shop.lw.handler("job")
    async def job(ctx: Context, n: int) -> int:
        async for _ in ctx.track([n], name=f"{n}"):
            pass
        return n

    worker = await shop.hire()
    jobs = await shop.lw.submit_many([("job", {"n": n}) for n in range(8)])
    await until(lambda: shop.count("completed") == len(jobs))
    saved = {row[0] for row in shop.rows("select checkpoint from laneway.progress")}
    assert saved == {0, 1, 2, 4, 5, 6, 7}
    await until(lambda: worker.capacity.in_use == 0)


async def test_thread_that_saves_while_its_worker_stops_does_not_hang(shop: Workshop) -> None:
    began, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    @shop.lw.handler("job")
    def job(ctx: SyncContext) -> None:
        began.set()
        try:
            for _ in ctx.track([1], durable=True):
                go_on.wait(PATIENCE)
        finally:
            ended.set()

    worker = await shop.hire()
    submitted = await shop.lw.submit("job")
    await until(began.is_set)
    await worker.stop(0.0)
    go_on.set()
    await until(ended.is_set)
    assert shop.status(submitted) == "approved"


async def test_no_progress_for_too_long_is_taken_back_where_the_type_asks_for_it(
    shop: Workshop,
) -> None:
    """Heartbeats alone do not keep such a job: its work has to move."""
    stopped: list[int] = []

    @shop.lw.handler("job", stale="progress", retry=SOON)
    async def job(ctx: Context) -> str:
        if ctx.attempt == 2:
            return "moved"
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(ctx.attempt)
        return "never"

    shop.lane("default", lease_seconds=2, stale_timeout_minutes=1)
    await shop.hire()
    submitted = await shop.lw.submit("job")
    await shop.running(submitted)
    shop.do("update laneway.lease set claimed_at = claimed_at - interval '61 seconds'")
    assert await submitted.wait(60) == "moved"
    ended = await submitted.get()
    assert [a.outcome for a in ended.attempts] == ["stalled", "completed"]
    assert ended.retries == 1
    await until(lambda: stopped == [1])
