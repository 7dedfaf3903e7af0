"""Between ctx.finish and the end of the handler: nothing waits for its own open transaction."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from laneway import Analysis, Cancel, Context, Snooze, SyncContext
from laneway.engine.claim import call_limits
from laneway.engine.lease.attempt_store import DatabaseAttemptStore
from laneway.errors import Refused
from laneway.store.database import Database
from laneway.store.leases import Verdict, WriteResult
from laneway.store.statement import Statement
from tests.engine import child_features
from tests.support.worker_harness import SOON, WorkerHarness, wait_until

AFTER = "after ctx.finish"


@pytest.fixture
def effects_harness(harness: WorkerHarness) -> WorkerHarness:
    """A harness with a table of effects beside Laneway's, and a limit of one."""
    harness.do("create table effect (attempt integer)")
    harness.do("insert into laneway.limits (name, max_concurrent) values ('narrow', 1)")
    return harness


@pytest.fixture
def no_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the leader from releasing what a worker did not release."""
    run = Database.run

    async def but_that(self: Database, statement: Statement[Any]) -> Any:
        return (
            0 if statement.name == "retention/release_self_finished" else await run(self, statement)
        )

    monkeypatch.setattr(Database, "run", but_that)


def effects(harness: WorkerHarness) -> list[int]:
    return [row[0] for row in harness.rows("select attempt from effect order by 1")]


def is_settled(harness: WorkerHarness) -> bool:
    """Neither slot nor limit is held, and nothing waits to be given back."""
    used = harness.one("select coalesce(sum(abs(running)), 0)::integer from laneway.limit_usage")
    return bool(
        harness.holds_nothing()
        and used == 0
        and not harness.rows("select 1 from laneway.self_finished")
    )


@pytest.mark.parametrize("isolation", ["async", "thread", "child"])
async def test_context_is_not_in_the_way_of_the_commit(
    effects_harness: WorkerHarness, isolation: str, no_leader: None
) -> None:
    """Writes about the job are refused, the release of a limit is not, and nothing waits."""

    @effects_harness.lw.handler("async_after_finish", max_retries=0)
    async def async_job(ctx: Context, dsn: str) -> None:
        ctx.log("before")
        async with await psycopg.AsyncConnection.connect(dsn) as conn, ctx.limit("narrow"):
            await conn.execute("insert into effect values (1)")
            await ctx.finish(conn=conn, result="done")
            with pytest.raises(Refused, match=rf"ctx\.step was called {AFTER}"):
                await ctx.step("late", pytest.fail, "a step must not run")
            with pytest.raises(Refused, match=rf"ctx\.save was called {AFTER}"):
                await ctx.save("late")
            with pytest.raises(Refused, match=rf"ctx\.limit was called {AFTER}"):
                async with ctx.limit("openai"):
                    pytest.fail("a limit must not be had")
            await ctx.progress(1, 2)
            ctx.log("late")

    @effects_harness.lw.handler("thread_after_finish", max_retries=0)
    def thread_job(ctx: SyncContext, dsn: str) -> None:
        child_features.use_after_finish(ctx, dsn)

    await child_features.adopted_by(effects_harness)
    job = await effects_harness.lw.submit(f"{isolation}_after_finish", {"dsn": effects_harness.dsn})
    done = await effects_harness.ended(job, 60)
    assert (done.status, done.result, effects(effects_harness)) == ("completed", "done", [1]), (
        done.error
    )
    await wait_until(lambda: is_settled(effects_harness))
    (attempt,) = (await job.get()).attempts
    assert [line.message for line in attempt.log] == ["before"]


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_timeout_ends_a_handler_with_an_open_finish(
    effects_harness: WorkerHarness, isolation: str
) -> None:
    never = threading.Event()

    @effects_harness.lw.handler("async_job", timeout=0.3, max_retries=0)
    async def async_job(ctx: Context) -> None:
        async with (
            await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn,
            ctx.limit("narrow"),
        ):
            await conn.execute("insert into effect values (1)")
            await ctx.finish(conn=conn)
            await asyncio.Event().wait()

    @effects_harness.lw.handler("thread_job", timeout=0.3, max_retries=0)
    def thread_job(ctx: SyncContext) -> None:
        with psycopg.connect(effects_harness.dsn) as conn, ctx.limit("narrow"):
            conn.execute("insert into effect values (1)")
            ctx.finish(conn=conn)
            while True:
                ctx.progress(1)
                never.wait(0.01)

    await effects_harness.start_worker()
    ended = await effects_harness.ended(await effects_harness.lw.submit(f"{isolation}_job"))
    assert ended.error is not None
    assert (ended.status, ended.error.type, effects(effects_harness)) == ("failed", "Timeout", [])
    await wait_until(lambda: is_settled(effects_harness))


@pytest.mark.parametrize("asked", ["step", "limit"])
async def test_requests_under_way_do_not_wait_for_the_open_transaction(
    effects_harness: WorkerHarness, asked: str
) -> None:
    """The handler commits only when its other tasks are done, and they are answered."""
    effects_harness.do("update laneway.limits set max_concurrent = 0 where name = 'narrow'")
    finished = asyncio.Event()
    met: list[object] = []

    @effects_harness.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> None:
        async def other() -> None:
            if asked == "step":
                await ctx.step("slow", finished.wait)
            else:
                async with ctx.limit("narrow"):
                    pass

        async with await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn:
            beside = asyncio.create_task(other())
            await asyncio.sleep(0)
            await ctx.finish(conn=conn)
            finished.set()
            met.extend(await asyncio.gather(beside, return_exceptions=True))

    await effects_harness.start_worker()
    assert (
        await effects_harness.ended(await effects_harness.lw.submit("job"))
    ).status == "completed"
    (error,) = met
    assert isinstance(error, Refused)
    assert str(error).startswith(f"ctx.{asked} was called {AFTER}")


async def test_cancel_does_not_wait_for_ever_for_an_open_finish(
    effects_harness: WorkerHarness,
) -> None:
    finished, let_go, rolled_back = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @effects_harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn:
            await ctx.finish(conn=conn)
            finished.set()
            await let_go.wait()
            await conn.rollback()
        rolled_back.set()
        await asyncio.Event().wait()

    await effects_harness.start_worker()
    submitted = await effects_harness.lw.submit("job")
    await asyncio.wait_for(finished.wait(), 60)
    with pytest.raises(Refused, match="in an open transaction: try again"):
        await asyncio.wait_for(submitted.cancel(), 60)
    let_go.set()
    await asyncio.wait_for(rolled_back.wait(), 60)
    await submitted.cancel()
    assert (await effects_harness.ended(submitted)).status == "cancelled"


# -- what it raised ----------------------------------------------------------------------------


def raising(kind: str) -> Exception:
    return {
        "snooze": Snooze(3600),
        "cancel": Cancel("not wanted"),
        "fail": ValueError("too late"),
    }[kind]


@pytest.mark.parametrize("kind", ["snooze", "cancel", "fail"])
async def test_exception_after_the_commit_releases_everything(
    effects_harness: WorkerHarness, kind: str, no_leader: None, caplog: pytest.LogCaptureFixture
) -> None:
    @effects_harness.lw.handler("job", limits=["narrow"])
    async def job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn:
            await ctx.finish(conn=conn, result="done")
        raise raising(kind)

    worker = await effects_harness.start_worker()
    with caplog.at_level(logging.WARNING, "laneway"):
        done = await effects_harness.ended(
            await effects_harness.lw.submit("job", concurrency_key="k")
        )
        await wait_until(lambda: is_settled(effects_harness))
        await wait_until(lambda: not worker.completer.backlog)
    assert (done.status, done.result) == ("completed", "done")
    assert effects_harness.rows("select 1 from laneway.key_holders") == []
    assert "superseded" not in caplog.text
    text = {"snooze": "", "cancel": "Cancel: not wanted", "fail": "ValueError: too late"}[kind]
    assert text in caplog.text


@pytest.mark.parametrize("kind", ["snooze", "cancel", "fail"])
async def test_exception_after_a_rollback_counts_as_usual(
    effects_harness: WorkerHarness, kind: str
) -> None:
    called: list[int] = []

    @effects_harness.lw.handler("job", max_retries=0)
    async def job(ctx: Context) -> None:
        called.append(ctx.attempt)
        async with await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn:
            await ctx.finish(conn=conn, result="done")
            raise raising(kind)

    await effects_harness.start_worker()
    submitted = await effects_harness.lw.submit("job")
    expected = {"snooze": "approved", "cancel": "cancelled", "fail": "failed"}[kind]
    await wait_until(lambda: called and effects_harness.holds_nothing())
    found = await submitted.get()
    assert (found.status, found.attempt, found.retries) == (expected, 1, 0)


async def test_stopping_worker_releases_a_handler_with_an_open_finish(
    effects_harness: WorkerHarness,
) -> None:
    finished = asyncio.Event()

    @effects_harness.lw.handler("job")
    async def job(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn:
            await conn.execute("insert into effect values (1)")
            await ctx.finish(conn=conn)
            finished.set()
            await asyncio.Event().wait()

    worker = await effects_harness.start_worker()
    submitted = await effects_harness.lw.submit("job")
    await asyncio.wait_for(finished.wait(), 60)
    await worker.stop(0.0)
    assert (effects_harness.status(submitted), effects(effects_harness)) == ("approved", [])
    found = await submitted.get()
    assert ([a.outcome for a in found.attempts], found.retries) == (["released"], 0)


# -- what PostgreSQL refuses -------------------------------------------------------------------


async def test_analysis_that_postgresql_refuses_fails_the_job_without_retry(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = DatabaseAttemptStore.settle

    async def unreadable(
        ledger: DatabaseAttemptStore, verdicts: Sequence[Verdict]
    ) -> list[WriteResult]:
        given = [v._replace(result="{") if v.kind == "analyzed" else v for v in verdicts]
        return await settle(ledger, given)

    monkeypatch.setattr(DatabaseAttemptStore, "settle", unreadable)

    @harness.lw.handler("job", approval=True)
    async def job(ctx: Context) -> None: ...

    @job.analyze
    async def plan(ctx: Context) -> Analysis:
        return Analysis(plan={})

    harness.lane("analysis", poll_interval_ms=100)
    await harness.start_worker()
    submitted = await harness.lw.submit("job")
    ended = await harness.ended(submitted)
    assert (ended.status, ended.attempt) == ("failed", 1)
    assert ended.error is not None
    assert ended.error.type == "InvalidResult"


# -- limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["finish", "commit"])
async def test_limit_released_with_an_attempt_is_granted_at_once(
    effects_harness: WorkerHarness, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_limits, "FIRST_S", 600.0)
    monkeypatch.setattr(call_limits, "LONGEST_S", 600.0)
    asked, let_go = child_features.when_full(monkeypatch), asyncio.Event()

    @effects_harness.lw.handler("finish", limits=["narrow"])
    async def finish(ctx: Context) -> None:
        await let_go.wait()

    @effects_harness.lw.handler("commit")
    async def commit(ctx: Context) -> None:
        async with (
            await psycopg.AsyncConnection.connect(effects_harness.dsn) as conn,
            ctx.limit("narrow"),
        ):
            await let_go.wait()
            await ctx.finish(conn=conn)

    @effects_harness.lw.handler("waits", retry=SOON)
    async def waits(ctx: Context) -> str:
        async with ctx.limit("narrow"):
            return "held"

    await effects_harness.start_worker()
    await effects_harness.lw.submit(end)
    await wait_until(
        lambda: (
            effects_harness.one("select coalesce(sum(running), 0) from laneway.limit_usage") == 1
        )
    )
    second = await effects_harness.lw.submit("waits")
    await wait_until(asked.is_set)
    let_go.set()
    assert await second.wait(60) == "held"
