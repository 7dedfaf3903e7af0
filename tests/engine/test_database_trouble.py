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
from tests.support.worker_harness import SOON, WorkerHarness, wait_until

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


async def test_storm_of_lost_connections_loses_no_job_and_doubles_none(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    let_go = asyncio.Event()

    @harness.lw.handler("job", retry=SOON, max_retries=20)
    async def job(ctx: Context, n: int) -> int:
        await ctx.progress(n)
        if n % 10 == 0:
            await let_go.wait()
        return n

    harness.lane("default", lease_seconds=2, poll_interval_ms=100)
    await harness.start_worker()
    jobs = await harness.lw.submit_many([("job", {"n": n}) for n in range(200)])
    killed = 0

    def strike() -> bool:
        nonlocal killed
        killed += int(harness.one(TERMINATE))
        return killed >= 40

    await wait_until(strike)
    let_go.set()
    await wait_until(lambda: harness.count("completed") == len(jobs), timeout=60)
    results = harness.rows("select result::int from laneway.outcome")
    assert sorted(n for (n,) in results) == list(range(200))
    await wait_until(harness.holds_nothing)
    assert_at_most_one_per_second(warnings(caplog))


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
async def test_verdict_with_lost_connection_is_accepted_when_repeated(
    harness: WorkerHarness,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    """Once for every kind of end; the worker cannot know whether its write was stored."""
    caplog.set_level(logging.WARNING)

    @harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context, end: str) -> str:
        match end:
            case "fail" if ctx.attempt == 1:
                raise ValueError
            case "snooze" if ctx.attempt == 1:
                raise Snooze(0.1)
            case "cancel":
                raise Cancel("enough")
        return end

    worker = await harness.start_worker()
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
        ended = await harness.ended(await harness.lw.submit("job", {"end": end}))
        assert ended.status == status
        assert [a.outcome for a in ended.attempts] == outcomes
    assert lost == {"finish", "fail", "snooze", "cancel"}
    await wait_until(lambda: worker.completer.backlog == 0)
    assert not [r for r in caplog.records if "superseded" in r.getMessage()]


async def test_verdict_that_postgresql_refuses_fails_only_its_attempt(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context, n: int) -> int:
        return n

    worker = await harness.start_worker()
    add = worker.completer.add
    # What no check of ours lets through, as if one had a hole.
    monkeypatch.setattr(
        worker.completer,
        "add",
        lambda verdict: add(
            verdict._replace(result='"\\u0000"') if verdict.result == "7" else verdict
        ),
    )
    jobs = await harness.lw.submit_many(
        [{"job_type": "job", "payload": {"n": n}, "max_retries": 0} for n in range(20)]
    )
    await wait_until(lambda: harness.count("completed") + harness.count("failed") == 20)
    failed = await jobs[7].get()
    assert failed.error is not None
    assert (failed.status, failed.error.type) == ("failed", "InvalidResult")
    assert harness.count("completed") == 19
    assert f"result: job {failed.id}: the result was refused" in caplog.text


async def test_lease_lapses_if_the_verdict_cannot_be_stored(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    @harness.lw.handler("job", retry=SOON)
    async def job(ctx: Context) -> None: ...

    harness.lane("default", lease_seconds=2)
    worker = await harness.start_worker()
    add = worker.completer.add
    monkeypatch.setattr(
        worker.completer, "add", lambda verdict: add(verdict._replace(ran_s=float("inf")))
    )
    submitted = await harness.lw.submit("job", max_retries=0)
    ended = await harness.ended(submitted)
    assert ended.error is not None
    assert (ended.status, ended.error.type) == ("failed", "WorkerLost")


async def test_claim_that_is_too_large_for_postgresql_is_tried_with_fewer_jobs(
    harness: WorkerHarness,
) -> None:
    """As with a thousand payloads of a megabyte each: it cannot make such an answer."""

    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    harness.do(
        "create function fail() returns trigger language plpgsql as $$ begin"
        " if (select count(*) from claimed) > 20 then"
        "   raise exception 'array size exceeds the maximum allowed' using errcode = '54000';"
        " end if; return null; end $$;"
        " create trigger fail after insert on laneway.lease referencing new table as claimed"
        " for each statement execute function fail()"
    )
    jobs = await harness.lw.submit_many([("job", {}, {})] * 100)
    await harness.start_worker()
    for one in jobs:
        assert (await harness.ended(one)).attempt == 1


async def test_worker_started_before_its_database_waits_for_it(
    own_postgres: EmbeddedPostgres,
) -> None:
    migrate(own_postgres.dsn)
    async with WorkerHarness(own_postgres.dsn) as harness:

        @harness.lw.handler("job")
        async def job(ctx: Context) -> str:
            return "at last"

        submitted = await harness.lw.submit("job")
        await asyncio.to_thread(own_postgres.stop)
        hired = asyncio.create_task(harness.start_worker())
        await wait_until(lambda: harness.workers)
        await asyncio.sleep(0)
        assert not hired.done()
        await asyncio.to_thread(own_postgres.start)
        await hired
        assert await submitted.wait(60) == "at last"
        assert len(harness.workers) == 1


@pytest.fixture
async def own_shop(own_postgres: EmbeddedPostgres) -> AsyncIterator[WorkerHarness]:
    migrate(own_postgres.dsn)
    async with WorkerHarness(own_postgres.dsn) as harness:
        yield harness


async def test_work_continues_after_a_crash_of_postgresql(
    own_shop: WorkerHarness, own_postgres: EmbeddedPostgres, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    harness = own_shop
    let_go = asyncio.Event()

    @harness.lw.handler("async_job", retry=SOON, max_retries=20)
    async def async_job(ctx: Context, n: int) -> int:
        await ctx.progress(n)
        await let_go.wait()
        return n

    @harness.lw.handler("thread_job", retry=SOON, max_retries=20)
    def thread_job(ctx: SyncContext, n: int) -> int:
        ctx.save(n)
        return n

    harness.lane("default", lease_seconds=4, poll_interval_ms=100)
    await harness.start_worker()
    acked = 0
    for n in range(0, 40, 2):
        await harness.lw.submit_many([("async_job", {"n": n}), ("thread_job", {"n": n + 1})])
        acked += 2
    await wait_until(lambda: harness.count("running") >= 20)
    await asyncio.to_thread(own_postgres.restart, "immediate")
    let_go.set()
    # Submits during and after the crash either answer or raise; what answered is there.
    for n in range(40, 60):
        try:
            await harness.lw.submit("thread_job", {"n": n})
            acked += 1
        except LanewayError:
            continue
    harness.conn.close()
    fresh = WorkerHarness(harness.dsn)
    async with fresh:
        await wait_until(lambda: fresh.count("completed") >= acked, timeout=60)
        assert fresh.one("select count(*) from laneway.jobs_view where status <> 'completed'") == 0
        await wait_until(fresh.holds_nothing)
    assert_at_most_one_per_second(warnings(caplog))
