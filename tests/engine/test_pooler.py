"""Laneway works behind pgbouncer without a setting that says so: `make test-pooler`."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from laneway import Context, Laneway
from laneway.config.settings import Settings
from laneway.errors import DatabaseUnavailable
from laneway.store import health, pooler
from laneway.store.database import Database, connection_options
from laneway.store.leases import heartbeat
from laneway.store.migrate import migrate
from laneway.store.statement import Statement, scalar
from laneway.store.sync_connection import SyncConnection
from laneway.testing.proxy import Proxy
from tests.support.pgbouncer import pgbouncer
from tests.support.server_address import address
from tests.support.worker_harness import QUICK, WorkerHarness, wait_until

pytestmark = pytest.mark.pooler


class Text(Statement[Any]):
    """A statement of a test."""

    @property
    def text(self) -> str:
        return self.name


# pgbouncer refuses startup options, unless it is set to swallow them.
SWALLOWS = {"ignore_startup_parameters": "options"}
FOUND = "a pooler is in front of PostgreSQL"


@pytest.mark.parametrize("settings", [{}, SWALLOWS], ids=["refuses", "swallows"])
async def test_jobs_run_behind_an_undeclared_pooler(
    make_harness: Callable[..., WorkerHarness],
    dsn: str,
    settings: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "laneway")
    harness = make_harness()
    harness.lane("default", lease_seconds=2, poll_interval_ms=100)
    with pgbouncer(dsn, default_pool_size=2, **settings) as pooled:
        async with Laneway(pooled, **QUICK) as lw:

            @lw.handler("double")
            async def double(ctx: Context, n: int) -> int:
                await ctx.save(n)
                await asyncio.sleep(0.05)
                return 2 * n

            workers = [await harness.start_worker(lw) for _ in range(3)]
            jobs = await asyncio.gather(*(lw.submit("double", {"n": n}) for n in range(40)))
            assert [await job.wait(60) for job in jobs] == [2 * n for n in range(40)]
            for worker in workers:
                await worker.stop()
    assert [m for m in caplog.messages if m.startswith(FOUND)] != []
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("settings", [{}, SWALLOWS], ids=["refuses", "swallows"])
async def test_flows_and_waits_work_behind_an_undeclared_pooler(
    make_harness: Callable[..., WorkerHarness], dsn: str, settings: dict[str, str]
) -> None:
    harness = make_harness()
    harness.lane("default", lease_seconds=2, poll_interval_ms=100)
    runs: Counter[str] = Counter()
    with pgbouncer(dsn, default_pool_size=2, **settings) as pooled:
        async with Laneway(pooled, **QUICK) as lw:

            @lw.handler("page")
            async def page(ctx: Context, n: int) -> int:
                runs[f"page {n}"] += 1
                return n

            @lw.handler("book")
            async def book(ctx: Context, n: int) -> int:
                parts = await ctx.run_all("pages", [page.job(n=n + i) for i in (1, 2)])
                await ctx.sleep("nap", 0.2)
                sent: int = await ctx.wait_event("reviewed", key=str(n), timeout=60)
                return sum(parts) + sent

            @lw.handler("join")
            async def join(ctx: Context) -> int:
                runs["join"] += 1
                return sum([part.result async for part in ctx.results()])

            workers = [await harness.start_worker(lw) for _ in range(3)]
            async with lw.flow("library") as flow:
                books = [flow.add(book, n=10 * n) for n in range(10)]
                last = flow.add(join, after=books)
            for n in range(10):
                await lw.send_event("reviewed", key=str(10 * n), payload=1)
            assert await last.wait(60) == sum(20 * n + 3 + 1 for n in range(10))
            ended = await flow.wait(60)
            assert (ended.counts.jobs, ended.counts.completed) == (31, 31)
            for worker in workers:
                await worker.stop()
    assert set(runs.values()) == {1}
    assert len(runs) == 21


async def test_sessions_of_a_session_pooler_are_used_for_wake_ups(
    make_harness: Callable[..., WorkerHarness], dsn: str
) -> None:
    harness = make_harness()
    harness.lane("default", poll_interval_ms=120_000)
    with pgbouncer(dsn, pool_mode="session", default_pool_size=40, **SWALLOWS) as pooled:
        async with Laneway(pooled, **QUICK) as lw:

            @lw.handler("echo")
            async def echo(ctx: Context) -> str:
                return "here"

            worker = await harness.start_worker(lw)
            await wait_until(lambda: worker.wakeups.is_listening)
            job = await lw.submit("echo")
            assert await job.wait(60) == "here"
            await worker.stop()


@pytest.mark.parametrize("settings", [{}, SWALLOWS], ids=["refuses", "swallows"])
def test_heartbeats_work_behind_an_undeclared_pooler(dsn: str, settings: dict[str, str]) -> None:
    with pgbouncer(dsn, default_pool_size=1, **settings) as pooled:
        options = connection_options(pooled, Settings(), "test")
        connections = [SyncConnection(pooled, options) for _ in range(2)]
        for _ in range(3):
            for connection in connections:
                assert connection.run(heartbeat([], [])) == []
        for connection in connections:
            connection.close()


def test_migration_goes_through_a_pooler(empty_dsn: str) -> None:
    with pgbouncer(empty_dsn, default_pool_size=1) as pooled:
        assert "definitions" in migrate(pooled)
        assert migrate(pooled) == []


async def test_pooler_that_is_denied_is_named_with_the_cure(dsn: str) -> None:
    with pgbouncer(dsn) as pooled:
        denied = Settings.load(database_url=pooled, pooler=False)
        with pytest.raises(DatabaseUnavailable, match="LANEWAY_POOLER=true"):
            await health.check_reachable(pooled, denied)


async def test_pooler_met_later_is_found_by_its_first_error(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pgbouncer(dsn, default_pool_size=1, **SWALLOWS) as pooled:
        # As if the first connection had been direct.
        monkeypatch.setitem(pooler.known, pooled, False)
        first, second = (Database(pooled, Settings.load(database_url=pooled)) for _ in range(2))
        await first.run(health.read_server())
        with pytest.raises(DatabaseUnavailable, match="LANEWAY_POOLER=true"):
            await second.run(health.read_server())
        for database in (first, second):
            await database.run(health.read_server())
            assert database.is_pooled
            await database.close()


async def test_dead_connection_to_a_pooler_is_noticed_unlike_a_slow_one(
    dsn: str,
) -> None:
    with pgbouncer(dsn, default_pool_size=1) as pooled:
        async with Proxy(*address(pooled)) as proxy:
            far = make_conninfo(pooled, host=proxy.host, port=proxy.port)
            settings = Settings.load(
                database_url=far, silence_timeout=3.0, statement_timeout=600.0, connect_timeout=10
            )
            database = Database(far, settings, role="tests", size=2)
            one = Text("select 1", scalar)
            assert await database.run(one) == 1
            # One session for all: the second waits in the pooler's queue, and so does who asks.
            slow = Text("select 1 from pg_sleep(5)", scalar)
            both = await asyncio.gather(database.run(slow), database.run(slow))
            assert list(both) == [1, 1]
            proxy.swallow()
            with pytest.raises(DatabaseUnavailable, match="stopped responding"):
                await asyncio.wait_for(database.run(one), 60)
            assert await database.run(one) == 1
            await database.close()
