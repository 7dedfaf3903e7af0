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
from tests.engine import held
from tests.engine.workshop import SOON, Workshop, until

# Django refuses its connections where an event loop runs; raw cursors take other statements.
PLAIN = [
    (isolation, driver)
    for isolation in ("thread", "async")
    for driver in SYNC
    if "raw" not in driver and not (isolation == "async" and "django" in driver)
]
NOT_COMMITTED = "the transaction that ctx.finish was called in was not committed"


@pytest.fixture
def bank(shop: Workshop) -> Workshop:
    """A shop with a table of effects beside Laneway's."""
    shop.do("create table effect (attempt integer)")
    return shop


def effects(shop: Workshop) -> list[int]:
    return [row[0] for row in shop.rows("select attempt from effect order by 1")]


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


async def ended_once(shop: Workshop, job: JobHandle, attempts: int, result: object) -> None:
    done = await shop.ended(job)
    assert (done.status, done.attempt, done.result) == ("completed", attempts, result)
    assert effects(shop) == [attempts]
    await until(lambda: not shop.rows("select 1 from laneway.self_finished"))
    await until(shop.holds_nothing)


@pytest.mark.parametrize("driver", ASYNC)
async def test_effect_and_end_are_committed_together_by_async_drivers(
    bank: Workshop, driver: str
) -> None:
    @bank.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> None:
        async with ASYNC[driver](bank.dsn) as (conn, commit, rollback):
            await ctx.guard(conn)
            await write(conn, ctx.attempt)
            await ctx.finish(conn=conn, result={"attempt": ctx.attempt})
            if ctx.attempt == 1:
                await rollback()
            else:
                await commit()

    await bank.hire()
    submitted = await bank.lw.submit("job", unique_key="k")
    await ended_once(bank, submitted, 2, {"attempt": 2})
    (first, _) = (await submitted.get()).attempts
    assert first.outcome == "failed"
    assert first.error is not None
    assert (first.error.type, first.error.message) == ("FinishRolledBack", NOT_COMMITTED)
    assert bank.rows("select 1 from laneway.job_keys") == []


@pytest.mark.parametrize("isolation,driver", PLAIN)
async def test_effect_and_end_are_committed_together_by_sync_drivers(
    bank: Workshop, isolation: str, driver: str
) -> None:
    @bank.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> None:
        with SYNC[driver](bank.dsn) as (conn, commit, rollback):
            ctx.guard(conn)
            write_now(conn, ctx.attempt)
            ctx.finish(conn=conn, result={"attempt": ctx.attempt})
            (rollback if ctx.attempt == 1 else commit)()

    @bank.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> None:
        with SYNC[driver](bank.dsn) as (conn, commit, rollback):
            await ctx.guard(conn)
            write_now(conn, ctx.attempt)
            await ctx.finish(conn=conn, result={"attempt": ctx.attempt})
            (rollback if ctx.attempt == 1 else commit)()

    await bank.hire()
    await ended_once(bank, await bank.lw.submit(f"{isolation}_job"), 2, {"attempt": 2})


@pytest.mark.parametrize("after", ["return", "raise", "die", "linger"])
async def test_a_child_finishes_in_its_own_transaction(bank: Workshop, after: str) -> None:
    """Nothing that happens after the commit changes the outcome."""
    bank.lane("default", lease_seconds=2)
    await held.adopted_by(bank)
    job = await bank.lw.submit("child_finish", {"dsn": bank.dsn, "after": after})
    await until(lambda: bank.status(job) == "completed", 60)
    if after == "linger":
        await until(lambda: -1 in effects(bank), 60)
        bank.do("delete from effect where attempt = -1")
    await ended_once(bank, job, 1, {"by": "child"})
    (attempt,) = (await job.get()).attempts
    assert [line.message for line in attempt.log] == ["before the end"]


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_error_after_the_commit_is_only_logged(
    bank: Workshop, isolation: str, caplog: pytest.LogCaptureFixture
) -> None:
    @bank.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(bank.dsn) as conn:
            await write(conn, ctx.attempt)
            await ctx.finish(conn=conn, result="done")
        raise ValueError("too late")

    @bank.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> None:
        with psycopg.connect(bank.dsn) as conn:
            write_now(conn, ctx.attempt)
            ctx.finish(conn=conn, result="done")
        raise ValueError("too late")

    await bank.hire()
    with caplog.at_level(logging.WARNING, "laneway"):
        await ended_once(bank, await bank.lw.submit(f"{isolation}_job"), 1, "done")
        await until(lambda: "raised after it finished: ValueError: too late" in caplog.text)


async def test_an_error_before_the_commit_is_the_failure(bank: Workshop) -> None:
    @bank.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(bank.dsn) as conn:
            await write(conn, ctx.attempt)
            await ctx.finish(conn=conn)
            if ctx.attempt == 1:
                raise ValueError("not yet")

    await bank.hire()
    submitted = await bank.lw.submit("job")
    await ended_once(bank, submitted, 2, None)
    error = (await submitted.get()).attempts[0].error
    assert error is not None
    assert (error.type, error.message) == ("ValueError", "not yet")


async def test_handler_continues_after_its_finish(bank: Workshop) -> None:
    """Its lease is gone, but it is not stopped; its return value is ignored."""
    bank.lane("default", lease_seconds=2)
    heard, went_on = threading.Event(), asyncio.Event()

    @bank.lw.handler("job")
    async def job(ctx: Context) -> object:
        async with await psycopg.AsyncConnection.connect(bank.dsn) as conn:
            await write(conn, ctx.attempt)
            await ctx.finish(conn=conn, result="written")
        await asyncio.to_thread(heard.wait, 20)
        await asyncio.sleep(0)
        went_on.set()
        return {"no", "json"}

    worker = await bank.hire()
    stop = worker.executor.stop_by_claim

    def listen(seq: int, attempt: int, answer: str) -> None:
        stop(seq, attempt, answer)
        if answer == "fenced":
            heard.set()

    worker.executor.stop_by_claim = listen  # type: ignore[method-assign]
    submitted = await bank.lw.submit("job")
    await asyncio.wait_for(went_on.wait(), 60)
    await ended_once(bank, submitted, 1, "written")


async def test_a_finish_rolled_back_may_be_called_again(bank: Workshop) -> None:
    @bank.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(bank.dsn) as conn:
            await write(conn, 7)
            await ctx.finish(conn=conn, result=1)
            await conn.rollback()
            await write(conn, ctx.attempt)
            await ctx.finish(conn=conn, result=2)
            with pytest.raises(Refused, match="was called already"):
                await ctx.finish(conn=conn, result=3)

    await bank.hire()
    await ended_once(bank, await bank.lw.submit("job"), 1, 2)


async def test_a_connection_without_a_transaction_finishes_at_once(bank: Workshop) -> None:
    @bank.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(bank.dsn, autocommit=True) as conn:
            with pytest.raises(InvalidInput, match="conn: must be in a transaction"):
                await ctx.guard(conn)
            await write(conn, ctx.attempt)
            await ctx.finish(conn=conn)
            assert bank.status(ctx.job_id) == "completed"

    await bank.hire()
    await ended_once(bank, await bank.lw.submit("job"), 1, None)


@pytest.mark.parametrize("verb", ["guard", "finish"])
@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_a_superseded_attempt_commits_nothing(
    bank: Workshop, verb: str, isolation: str
) -> None:
    second = threading.Event()
    met: list[type[BaseException]] = []

    def go_on() -> None:
        second.wait(120)

    @bank.lw.handler("async_job", retry=SOON)
    async def async_job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(bank.dsn) as conn:
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

    @bank.lw.handler("thread_job", retry=SOON)
    def thread_job(ctx: SyncContext) -> None:
        if ctx.attempt == 1:
            go_on()
        try:
            with psycopg.connect(bank.dsn) as conn:
                if verb == "guard":
                    ctx.guard(conn)
                write_now(conn, ctx.attempt)
                ctx.finish(conn=conn, result=ctx.attempt)
        except BaseException as error:
            met.append(type(error))
            raise

    async with AsyncExitStack() as stack:
        # Its own heartbeat must not be the one that tells it.
        first = await bank.hire_unlike({"heartbeat_fraction": 0.99, "listen": False})
        job = await bank.lw.submit(f"{isolation}_job")
        stack.callback(second.set)
        if isolation == "thread":
            await bank.running(job)
            bank.lapse(job)
            await until(lambda: bank.one("select retries from laneway.jobs_view") == 1)
            second.set()
        else:
            threading.Thread(target=_supersede, args=(bank.dsn, second)).start()
        await ended_once(bank, job, 2, 2)
        await until(lambda: met)
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
async def test_a_cancelled_attempt_commits_nothing(
    bank: Workshop, verb: str, isolation: str
) -> None:
    cleaned: list[str] = []

    def cancel() -> None:
        bank.do("update laneway.lease set cancel_requested_at = clock_timestamp()")

    @bank.lw.handler("async_job")
    async def async_job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(bank.dsn) as conn:
            try:
                async with conn.transaction():
                    await write(conn, ctx.attempt)
                    cancel()
                    await (ctx.guard(conn) if verb == "guard" else ctx.finish(conn=conn))
            finally:
                # Its clean-up is not disturbed by a second cancellation.
                await conn.execute("select 1")
                cleaned.append("yes")

    @bank.lw.handler("thread_job")
    def thread_job(ctx: SyncContext) -> None:
        with psycopg.connect(bank.dsn) as conn, conn.transaction():
            write_now(conn, ctx.attempt)
            cancel()
            if verb == "guard":
                ctx.guard(conn)
            else:
                ctx.finish(conn=conn)

    await bank.hire_unlike({"heartbeat_fraction": 0.99, "listen": False})
    job = await bank.lw.submit(f"{isolation}_job")
    assert (await bank.ended(job)).status == "cancelled"
    assert effects(bank) == []
    assert cleaned == (["yes"] if isolation == "async" else [])


async def test_a_guarded_transaction_outlives_the_lease(bank: Workshop) -> None:
    """However late it is: while the transaction is open, no other attempt can start."""
    guarded, let_go = asyncio.Event(), asyncio.Event()

    @bank.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(bank.dsn) as conn:
            await ctx.guard(conn)
            await write(conn, ctx.attempt)
            guarded.set()
            await let_go.wait()
            await ctx.finish(conn=conn)

    worker = await bank.hire_unlike({"heartbeat_fraction": 0.99})
    submitted = await bank.lw.submit("job")
    await asyncio.wait_for(guarded.wait(), 60)
    bank.lapse(submitted)
    for _ in range(3):
        await worker.leader_services.watchdog.run_once()
    assert bank.status(submitted) == "running"
    let_go.set()
    await ended_once(bank, submitted, 1, None)


async def test_a_plain_handler_takes_no_async_connection(bank: Workshop) -> None:
    @bank.lw.handler("job", max_retries=0)
    def job(ctx: SyncContext) -> None:
        conn = psycopg.AsyncConnection.__new__(psycopg.AsyncConnection)
        for verb in (ctx.guard, lambda conn: ctx.finish(conn=conn)):
            with pytest.raises(TypeError, match="conn is async"):
                verb(conn)
        with pytest.raises(TypeError, match=r"conn: unsupported type builtins\.int"):
            ctx.guard(5)
        with pytest.raises(InvalidInput, match="result: a set"):
            ctx.finish(conn=bank.conn, result={1})

    await bank.hire()
    assert (await bank.ended(await bank.lw.submit("job"))).status == "completed"
