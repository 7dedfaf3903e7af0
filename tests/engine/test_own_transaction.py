"""Finishing in the handler's own transaction: its rows and the end of its job, both or neither."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest

from laneway import Context, JobHandle, SyncContext
from laneway.errors import InvalidInput, Refused, StaleAttempt
from tests.client.connections import ASYNC, SYNC
from tests.engine import child_features
from tests.support.worker_harness import SOON, WorkerHarness, wait_until

# Django refuses its connections where an event loop runs; raw cursors take other statements.
PLAIN = [
    (isolation, driver)
    for isolation in ("thread", "async")
    for driver in SYNC
    if "raw" not in driver and not (isolation == "async" and "django" in driver)
]
NOT_COMMITTED = "the transaction that ctx.finish was called in was not committed"


@pytest.fixture
def effects_harness(harness: WorkerHarness) -> WorkerHarness:
    """A harness with a table of effects beside Laneway's."""
    harness.do("create table effect (attempt integer)")
    return harness


def effects(harness: WorkerHarness) -> list[int]:
    return [row[0] for row in harness.rows("select attempt from effect order by 1")]


async def write(conn: Any, attempt: int) -> None:
    """Writes an effect, by whatever library this is."""
    text = f"insert into effect values ({attempt})"
    if type(conn).__module__.startswith(("psycopg", "asyncpg")):
        await conn.execute(text)
    else:
        from sqlalchemy import text as clause

        await conn.execute(clause(text))


def write_now(conn: Any, attempt: int) -> None:
    text = f"insert into effect values ({attempt})"
    if type(conn).__module__.startswith("psycopg"):
        conn.execute(text)
    elif type(conn).__module__.startswith("django"):
        with conn.cursor() as cursor:
            cursor.execute(text)
    else:
        from sqlalchemy import text as clause

        conn.execute(clause(text))


async def ended_once(harness: WorkerHarness, job: JobHandle, attempts: int, result: object) -> None:
    done = await harness.ended(job)
    assert (done.status, done.attempt, done.result) == ("completed", attempts, result)
    assert effects(harness) == [attempts]
    await wait_until(lambda: not harness.rows("select 1 from laneway.self_finished"))
    await wait_until(harness.holds_nothing)


@pytest.mark.parametrize("driver", ASYNC)
async def test_effect_and_end_are_committed_together_by_async_drivers(
    effects_harness: WorkerHarness, driver: str
) -> None:
    @effects_harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> None:
        async with ASYNC[driver](effects_harness.dsn) as (conn, commit, rollback):
            await ctx.guard(conn)
            await write(conn, ctx.attempt)
            await ctx.finish(conn=conn, result={"attempt": ctx.attempt})
            if ctx.attempt == 1:
                await rollback()
            else:
                await commit()

    await effects_harness.start_worker()
    submitted = await effects_harness.lw.submit("job", unique_key="k")
    await ended_once(effects_harness, submitted, 2, {"attempt": 2})
    (first, _) = (await submitted.get()).attempts
    assert first.outcome == "failed"
    assert first.error is not None
    assert (first.error.type, first.error.message) == ("FinishRolledBack", NOT_COMMITTED)
    assert effects_harness.rows("select 1 from laneway.job_keys") == []


@pytest.mark.parametrize("isolation,driver", PLAIN)
async def test_effect_and_end_are_committed_together_by_sync_drivers(
    effects_harness: WorkerHarness, isolation: str, driver: str
) -> None:
    @effects_harness.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> None:
        with SYNC[driver](effects_harness.dsn) as (conn, commit, rollback):
            ctx.guard(conn)
            write_now(conn, ctx.attempt)
            ctx.finish(conn=conn, result={"attempt": ctx.attempt})
            (rollback if ctx.attempt == 1 else commit)()

    @effects_harness.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> None:
        with SYNC[driver](effects_harness.dsn) as (conn, commit, rollback):
            await ctx.guard(conn)
            write_now(conn, ctx.attempt)
            await ctx.finish(conn=conn, result={"attempt": ctx.attempt})
            (rollback if ctx.attempt == 1 else commit)()

    await effects_harness.start_worker()
    await ended_once(
        effects_harness, await effects_harness.lw.submit(f"{isolation}_job"), 2, {"attempt": 2}
    )


@pytest.mark.parametrize("after", ["return", "raise", "die", "linger"])
async def test_child_finishes_in_its_own_transaction(
    effects_harness: WorkerHarness, after: str
) -> None:
    """Nothing that happens after the commit changes the outcome."""
    effects_harness.lane("default", lease_seconds=2)
    await child_features.adopted_by(effects_harness)
    job = await effects_harness.lw.submit(
        "child_finish", {"dsn": effects_harness.dsn, "after": after}
    )
    await wait_until(lambda: effects_harness.status(job) == "completed", 60)
    if after == "linger":
        await wait_until(lambda: -1 in effects(effects_harness), 60)
        effects_harness.do("delete from effect where attempt = -1")
    await ended_once(effects_harness, job, 1, {"by": "child"})
    (attempt,) = (await job.get()).attempts
    assert [line.message for line in attempt.log] == ["before the end"]


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_error_after_the_commit_is_only_logged(
    effects_harness: WorkerHarness, isolation: str, caplog: pytest.LogCaptureFixture
) -> None:
    @effects_harness.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn:
            await write(conn, ctx.attempt)
            await ctx.finish(conn=conn, result="done")
        raise ValueError("too late")

    @effects_harness.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> None:
        with psycopg.connect(effects_harness.dsn) as conn:
            write_now(conn, ctx.attempt)
            ctx.finish(conn=conn, result="done")
        raise ValueError("too late")

    await effects_harness.start_worker()
    with caplog.at_level(logging.WARNING, "laneway"):
        await ended_once(
            effects_harness, await effects_harness.lw.submit(f"{isolation}_job"), 1, "done"
        )
        await wait_until(lambda: "raised after it finished: ValueError: too late" in caplog.text)


async def test_error_before_the_commit_is_the_failure(effects_harness: WorkerHarness) -> None:
    @effects_harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn:
            await write(conn, ctx.attempt)
            await ctx.finish(conn=conn)
            if ctx.attempt == 1:
                raise ValueError("not yet")

    await effects_harness.start_worker()
    submitted = await effects_harness.lw.submit("job")
    await ended_once(effects_harness, submitted, 2, None)
    error = (await submitted.get()).attempts[0].error
    assert error is not None
    assert (error.type, error.message) == ("ValueError", "not yet")


async def test_handler_continues_after_its_finish(effects_harness: WorkerHarness) -> None:
    """Its lease is gone, but it is not stopped; its return value is ignored."""
    effects_harness.lane("default", lease_seconds=2)
    heard, went_on = threading.Event(), asyncio.Event()

    @effects_harness.lw.handler("job")
    async def job(ctx: Context) -> object:
        async with await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn:
            await write(conn, ctx.attempt)
            await ctx.finish(conn=conn, result="written")
        await asyncio.to_thread(heard.wait, 20)
        await asyncio.sleep(0)
        went_on.set()
        return {"no", "json"}

    worker = await effects_harness.start_worker()
    stop = worker.executor.stop_by_claim

    def listen(seq: int, attempt: int, answer: str) -> None:
        stop(seq, attempt, answer)
        if answer == "fenced":
            heard.set()

    worker.executor.stop_by_claim = listen  # type: ignore[method-assign]
    submitted = await effects_harness.lw.submit("job")
    await asyncio.wait_for(went_on.wait(), 60)
    await ended_once(effects_harness, submitted, 1, "written")


async def test_finish_rolled_back_may_be_called_again(effects_harness: WorkerHarness) -> None:
    @effects_harness.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn:
            await write(conn, 7)
            await ctx.finish(conn=conn, result=1)
            await conn.rollback()
            await write(conn, ctx.attempt)
            await ctx.finish(conn=conn, result=2)
            with pytest.raises(Refused, match="was called already"):
                await ctx.finish(conn=conn, result=3)

    await effects_harness.start_worker()
    await ended_once(effects_harness, await effects_harness.lw.submit("job"), 1, 2)


async def test_connection_without_a_transaction_finishes_at_once(
    effects_harness: WorkerHarness,
) -> None:
    @effects_harness.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(
            effects_harness.dsn, autocommit=True
        ) as conn:
            with pytest.raises(InvalidInput, match="conn: must be in a transaction"):
                await ctx.guard(conn)
            await write(conn, ctx.attempt)
            await ctx.finish(conn=conn)
            assert effects_harness.status(ctx.job_id) == "completed"

    await effects_harness.start_worker()
    await ended_once(effects_harness, await effects_harness.lw.submit("job"), 1, None)


@pytest.mark.parametrize("verb", ["guard", "finish"])
@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_superseded_attempt_commits_nothing(
    effects_harness: WorkerHarness, verb: str, isolation: str
) -> None:
    second = threading.Event()
    met: list[type[BaseException]] = []

    def go_on() -> None:
        second.wait(120)

    @effects_harness.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn:
            if ctx.attempt == 1:
                # It blocks the event loop, so it cannot be cancelled.
                go_on()
            try:
                if verb == "guard":
                    await ctx.guard(conn)
                await write(conn, ctx.attempt)
                await ctx.finish(conn=conn, result=ctx.attempt)
            except BaseException as error:
                met.append(type(error))
                raise

    @effects_harness.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> None:
        if ctx.attempt == 1:
            go_on()
        try:
            with psycopg.connect(effects_harness.dsn) as conn:
                if verb == "guard":
                    ctx.guard(conn)
                write_now(conn, ctx.attempt)
                ctx.finish(conn=conn, result=ctx.attempt)
        except BaseException as error:
            met.append(type(error))
            raise

    async with AsyncExitStack() as stack:
        # Its own heartbeat must not be the one that tells it.
        first = await effects_harness.start_worker_with(
            {"heartbeat_fraction": 0.99, "listen": False}
        )
        job = await effects_harness.lw.submit(f"{isolation}_job")
        stack.callback(second.set)
        if isolation == "thread":
            await effects_harness.running(job)
            effects_harness.lapse(job)
            await wait_until(
                lambda: effects_harness.one("select retries from laneway.jobs_view") == 1
            )
            second.set()
        else:
            threading.Thread(target=_supersede, args=(effects_harness.dsn, second)).start()
        await ended_once(effects_harness, job, 2, 2)
        await wait_until(lambda: met)
        assert issubclass(met[0], StaleAttempt)
        assert first.is_running


def _supersede(dsn: str, done: threading.Event) -> None:
    """Takes a job from a worker whose event loop stands still."""
    with psycopg.connect(dsn, autocommit=True, application_name="tests") as conn:
        while not conn.execute("select 1 from laneway.lease").fetchone():
            pass
        conn.execute(
            "select laneway.settle(array[seq], array[attempt], array['lost'], null, null, null,"
            " null) from laneway.lease"
        )
    done.set()


@pytest.mark.parametrize("verb", ["guard", "finish"])
@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_cancelled_attempt_commits_nothing(
    effects_harness: WorkerHarness, verb: str, isolation: str
) -> None:
    cleaned: list[str] = []

    def cancel() -> None:
        effects_harness.do("update laneway.lease set cancel_requested_at = clock_timestamp()")

    @effects_harness.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn:
            try:
                async with conn.transaction():
                    await write(conn, ctx.attempt)
                    cancel()
                    await (ctx.guard(conn) if verb == "guard" else ctx.finish(conn=conn))
            finally:
                # Its clean-up is not disturbed by a second cancellation.
                await conn.execute("select 1")
                cleaned.append("yes")

    @effects_harness.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        with psycopg.connect(effects_harness.dsn) as conn, conn.transaction():
            write_now(conn, ctx.attempt)
            cancel()
            if verb == "guard":
                ctx.guard(conn)
            else:
                ctx.finish(conn=conn)

    await effects_harness.start_worker_with({"heartbeat_fraction": 0.99, "listen": False})
    job = await effects_harness.lw.submit(f"{isolation}_job")
    assert (await effects_harness.ended(job)).status == "cancelled"
    assert effects(effects_harness) == []
    assert cleaned == (["yes"] if isolation == "async" else [])


async def test_guarded_transaction_outlives_the_lease(effects_harness: WorkerHarness) -> None:
    """However late it is: while the transaction is open, no other attempt can start."""
    guarded, let_go = asyncio.Event(), asyncio.Event()

    @effects_harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn:
            await ctx.guard(conn)
            await write(conn, ctx.attempt)
            guarded.set()
            await let_go.wait()
            await ctx.finish(conn=conn)

    worker = await effects_harness.start_worker_with({"heartbeat_fraction": 0.99})
    submitted = await effects_harness.lw.submit("job")
    await asyncio.wait_for(guarded.wait(), 60)
    effects_harness.lapse(submitted)
    for _ in range(3):
        await worker.leader_services.watchdog.run_once()
    assert effects_harness.status(submitted) == "running"
    let_go.set()
    await ended_once(effects_harness, submitted, 1, None)


async def test_plain_handler_takes_no_async_connection(effects_harness: WorkerHarness) -> None:
    @effects_harness.lw.handler("job", max_retries=0)
    def job(ctx: SyncContext) -> None:
        conn = psycopg.AsyncConnection.__new__(psycopg.AsyncConnection)
        for verb in (ctx.guard, lambda conn: ctx.finish(conn=conn)):
            with pytest.raises(TypeError, match="conn is async"):
                verb(conn)
        with pytest.raises(TypeError, match=r"conn: unsupported type builtins\.int"):
            ctx.guard(5)
        with pytest.raises(InvalidInput, match="result: a set"):
            ctx.finish(conn=effects_harness.conn, result={1})

    await effects_harness.start_worker()
    assert (
        await effects_harness.ended(await effects_harness.lw.submit("job"))
    ).status == "completed"
