"""The database goes away and comes back: no process exits, nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from laneway import Cancel, Context, Snooze, SyncContext
from laneway.embedded.postgres import EmbeddedPostgres
from laneway.errors import DatabaseUnavailable, LanewayError
from laneway.store.leases import Verdict
from laneway.store.migrate import migrate
from laneway.store.statement import Statement
from tests.engine.workshop import SOON, Workshop, until

TERMINATE = (
    "select count(pg_terminate_backend(pid)) from pg_stat_activity"
    " where datname = current_database() and application_name like 'laneway%'"
)


def warnings(caplog: pytest.LogCaptureFixture) -> dict[str, list[float]]:
    logged: dict[str, list[float]] = defaultdict(list)
    for record in caplog.records:
        if record.name == "laneway" and record.levelno >= logging.WARNING:
            logged[record.getMessage().partition(":")[0]].append(record.created)
    return logged


def assert_at_most_one_per_second(logged: dict[str, list[float]]) -> None:
    for cause, times in logged.items():
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert all(gap > 0.98 for gap in gaps), (cause, gaps)


async def test_a_storm_of_lost_connections_loses_no_job_and_doubles_none(
    shop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    let_go = asyncio.Event()

    @shop.lw.handler("job", retry=SOON, max_retries=20)
    async def job(ctx: Context, n: int) -> int:
        await ctx.progress(n)
        if n % 10 == 0:
            await let_go.wait()
        return n

    shop.lane("default", lease_seconds=2, poll_interval_ms=100)
    await shop.hire()
    jobs = await shop.lw.submit_many([("job", {"n": n}) for n in range(200)])
    killed = 0

    def strike() -> bool:
        nonlocal killed
        killed += int(shop.one(TERMINATE))
        return killed >= 40

    await until(strike)
    let_go.set()
    await until(lambda: shop.count("completed") == len(jobs), timeout=60)
    results = shop.rows("select result::int from laneway.outcome")
    assert sorted(n for (n,) in results) == list(range(200))
    await until(shop.holds_nothing)
    assert_at_most_one_per_second(warnings(caplog))


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
async def test_verdict_with_lost_connection_is_accepted_when_repeated(
    shop: Workshop,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    """Once for every kind of end; the worker cannot know whether its write was stored."""
    caplog.set_level(logging.WARNING)

    @shop.lw.handler("job", retry=SOON)
    async def job(ctx: Context, end: str) -> str:
        match end:
            case "fail" if ctx.attempt == 1:
                raise ValueError
            case "snooze" if ctx.attempt == 1:
                raise Snooze(0.1)
            case "cancel":
                raise Cancel("enough")
        return end

    worker = await shop.hire()
    run, add = worker.databases.settle.run, worker.completer.add
    kinds: list[str] = []
    lost: set[str] = set()

    def note(verdict: Verdict) -> None:
        kinds.append(verdict.kind)
        add(verdict)

    async def run_and_lose(statement: Statement[Any]) -> Any:
        is_first = kinds[-1] not in lost
        lost.add(kinds[-1])
        if is_first and moment == "before the commit":
            raise DatabaseUnavailable("the connection was lost")
        answer = await run(statement)
        if is_first:
            raise DatabaseUnavailable("the connection was lost")
        return answer

    monkeypatch.setattr(worker.completer, "add", note)
    monkeypatch.setattr(worker.databases.settle, "run", run_and_lose)
    expected = {
        "finish": ("completed", ["completed"]),
        "fail": ("completed", ["failed", "completed"]),
        "snooze": ("completed", ["snoozed", "completed"]),
        "cancel": ("cancelled", ["cancelled"]),
    }
    for end, (status, outcomes) in expected.items():
        ended = await shop.ended(await shop.lw.submit("job", {"end": end}))
        assert ended.status == status
        assert [a.outcome for a in ended.attempts] == outcomes
    assert lost == {"finish", "fail", "snooze", "cancel"}
    await until(lambda: worker.completer.backlog == 0)
    assert not [r for r in caplog.records if "superseded" in r.getMessage()]


async def test_verdict_that_postgresql_refuses_fails_only_its_attempt(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @shop.lw.handler("job", retry=SOON)
    async def job(ctx: Context, n: int) -> int:
        return n

    worker = await shop.hire()
    add = worker.completer.add
    # What no check of ours lets through, as if one had a hole.
    monkeypatch.setattr(
        worker.completer,
        "add",
        lambda verdict: add(
            verdict._replace(result='"\\u0000"') if verdict.result == "7" else verdict
        ),
    )
    jobs = await shop.lw.submit_many(
        [{"job_type": "job", "payload": {"n": n}, "max_retries": 0} for n in range(20)]
    )
    await until(lambda: shop.count("completed") + shop.count("failed") == 20)
    failed = await jobs[7].get()
    assert failed.error is not None
    assert (failed.status, failed.error.type) == ("failed", "InvalidResult")
    assert shop.count("completed") == 19
    assert f"result: job {failed.id}: the result was refused" in caplog.text


async def test_lease_lapses_if_the_verdict_cannot_be_stored(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    @shop.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> None: ...

    shop.lane("default", lease_seconds=2)
    worker = await shop.hire()
    add = worker.completer.add
    monkeypatch.setattr(
        worker.completer, "add", lambda verdict: add(verdict._replace(ran_s=float("inf")))
    )
    submitted = await shop.lw.submit("job", max_retries=0)
    ended = await shop.ended(submitted)
    assert ended.error is not None
    assert (ended.status, ended.error.type) == ("failed", "WorkerLost")


async def test_a_claim_that_is_too_large_for_postgresql_is_tried_with_fewer_jobs(
    shop: Workshop,
) -> None:
    """As with a thousand payloads of a megabyte each: it cannot make such an answer."""

    @shop.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    shop.do(
        "create function fail() returns trigger language plpgsql as $$ begin"
        " if (select count(*) from claimed) > 20 then"
        "   raise exception 'array size exceeds the maximum allowed' using errcode = '54000';"
        " end if; return null; end $$;"
        " create trigger fail after insert on laneway.lease referencing new table as claimed"
        " for each statement execute function fail()"
    )
    jobs = await shop.lw.submit_many([("job", {}, {})] * 100)
    await shop.hire()
    for one in jobs:
        assert (await shop.ended(one)).attempt == 1


async def test_a_worker_started_before_its_database_waits_for_it(
    own_postgres: EmbeddedPostgres,
) -> None:
    migrate(own_postgres.dsn)
    async with Workshop(own_postgres.dsn) as shop:

        @shop.lw.handler("job")
        async def job(ctx: Context) -> str:
            return "at last"

        submitted = await shop.lw.submit("job")
        await asyncio.to_thread(own_postgres.stop)
        hired = asyncio.create_task(shop.hire())
        await until(lambda: shop.workers)
        await asyncio.sleep(0)
        assert not hired.done()
        await asyncio.to_thread(own_postgres.start)
        await hired
        assert await submitted.wait(60) == "at last"
        assert len(shop.workers) == 1


@pytest.fixture
async def own_shop(own_postgres: EmbeddedPostgres) -> AsyncIterator[Workshop]:
    migrate(own_postgres.dsn)
    async with Workshop(own_postgres.dsn) as shop:
        yield shop


async def test_work_continues_after_a_crash_of_postgresql(
    own_shop: Workshop, own_postgres: EmbeddedPostgres, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    shop = own_shop
    let_go = asyncio.Event()

    @shop.lw.handler("async_job", retry=SOON, max_retries=20)
    async def async_job(ctx: Context, n: int) -> int:
        await ctx.progress(n)
        await let_go.wait()
        return n

    @shop.lw.handler("thread_job", retry=SOON, max_retries=20)
    def thread_job(ctx: SyncContext, n: int) -> int:
        ctx.save(n)
        return n

    shop.lane("default", lease_seconds=4, poll_interval_ms=100)
    await shop.hire()
    acked = 0
    for n in range(0, 40, 2):
        await shop.lw.submit_many([("async_job", {"n": n}), ("thread_job", {"n": n + 1})])
        acked += 2
    await until(lambda: shop.count("running") >= 20)
    await asyncio.to_thread(own_postgres.restart, "immediate")
    let_go.set()
    # Submits during and after the crash either answer or raise; what answered is there.
    for n in range(40, 60):
        try:
            await shop.lw.submit("thread_job", {"n": n})
            acked += 1
        except LanewayError:
            continue
    shop.conn.close()
    fresh = Workshop(shop.dsn)
    async with fresh:
        await until(lambda: fresh.count("completed") >= acked, timeout=60)
        assert fresh.one("select count(*) from laneway.jobs_view where status <> 'completed'") == 0
        await until(fresh.holds_nothing)
    assert_at_most_one_per_second(warnings(caplog))
