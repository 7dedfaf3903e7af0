"""Only the leader runs retention, in every worker process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from uuid import uuid4

import pytest

from laneway import Context
from laneway.config.settings import Settings
from laneway.engine.leader import retention as module
from laneway.engine.leader.retention import RetentionService
from laneway.engine.leader.watchdog import Watchdog
from laneway.observability.log_throttle import LogThrottle
from laneway.store.database import Database
from tests.support.worker_harness import QUICK, WorkerHarness, wait_until

# A slow machine must not lose the lead.
TTL = 600.0


class Keeper:
    """A watchdog and a retention service of one process, run by the test."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.promoted: set[str] = set()
        self.watchdog = Watchdog(database, settings, LogThrottle(), uuid4(), lambda types: None)
        self.retention = RetentionService(
            database, settings, LogThrottle(), self.watchdog, self.promoted.update
        )

    async def rounds(self) -> int:
        """Until it would wait for its next round; how many it took."""
        for n in range(1, 1000):
            delay = await self.retention.run_once()
            assert delay is not None
            if not self.retention.is_walking and delay > 0:
                return n
        raise AssertionError("it never comes to rest")


@asynccontextmanager
async def keeper(harness: WorkerHarness) -> AsyncIterator[Keeper]:
    settings = Settings.load(database_url=harness.dsn, **{**QUICK, "leader_ttl": TTL})
    database = Database(harness.dsn, settings, role="tests keeper", size=1)
    try:
        yield Keeper(database, settings)
    finally:
        await database.close()


def end_many(harness: WorkerHarness, count: int, days: float, status: str = "completed") -> None:
    """Ended jobs as history leaves them."""
    harness.do(
        "with j as (insert into laneway.jobs (id, job_type, payload)"
        "  select gen_random_uuid(), 'old', '{}' from generate_series(1, %s) returning seq)"
        " insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt,"
        "  retries, finished_at)"
        " select seq, %s, 'default', 'old', 0, 1, 0, clock_timestamp() - make_interval(secs => %s)"
        " from j",
        count,
        status,
        days * 86400,
    )


async def test_leader_deletes_jobs_by_policy(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_many(harness, 700, days=8)
    end_many(harness, 300, days=6)
    end_many(harness, 600, days=8)
    async with keeper(harness) as kept:
        assert await kept.retention.run_once() == TTL / 2
        assert harness.one("select count(*) from laneway.jobs") == 1600
        await kept.watchdog.run_once()
        assert await kept.rounds() >= 3
        assert harness.one("select count(*) from laneway.jobs") == 300
        # A new walk begins only when its time has come.
        end_many(harness, 5, days=8)
        await kept.rounds()
        assert harness.one("select count(*) from laneway.outcome") == 305
        later = SimpleNamespace(monotonic=lambda: time.monotonic() + module.WALK_S)
        monkeypatch.setattr(module, "time", later)
        await kept.rounds()
        assert harness.one("select count(*) from laneway.outcome") == 300


async def test_leader_corrects_counters_and_waiting_jobs(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restore of some tables."""
    counter = "select running from laneway.slots_held where lane = 'gone'"
    harm = "select laneway.count_slots('gone', gen_random_uuid(), 1)"
    missing = "select missing from laneway.countdowns"
    harness.do("insert into laneway.worker_lanes (name) values ('gone')")
    first = await harness.lw.submit("part")
    await harness.lw.submit("whole", after=[first])
    async with keeper(harness) as kept:
        await kept.watchdog.run_once()
        harness.one(harm)
        harness.do("update laneway.countdowns set missing = 9")
        await kept.rounds()
        assert sum(row[0] for row in harness.rows(counter)) == 0
        assert harness.rows(missing) == [(1,)]
        # And again, when its time has come.
        harness.one(harm)
        harness.do("delete from laneway.countdowns")
        await kept.rounds()
        assert harness.rows(missing) == []
        later = SimpleNamespace(monotonic=lambda: time.monotonic() + module.WALK_S)
        monkeypatch.setattr(module, "time", later)
        await kept.rounds()
        assert sum(row[0] for row in harness.rows(counter)) == 0
        assert harness.rows(missing) == [(1,)]


async def test_walk_rests_between_its_steps(harness: WorkerHarness) -> None:
    end_many(harness, 1200, days=8)
    async with keeper(harness) as kept:
        await kept.watchdog.run_once()
        began = time.monotonic()
        delay = await kept.retention.run_once()
        took = time.monotonic() - began
        assert kept.retention.is_walking
        assert delay is not None
        assert 0 < delay <= module.REST * took


async def test_walk_stops_without_leadership_and_restarts_with_it(harness: WorkerHarness) -> None:
    end_many(harness, 1200, days=8)
    async with keeper(harness) as first, keeper(harness) as second:
        await first.watchdog.run_once()
        await first.retention.run_once()
        assert harness.one("select count(*) from laneway.outcome") == 700
        harness.do("update laneway.leader set held_until = clock_timestamp() - interval '1 s'")
        await second.watchdog.run_once()
        assert second.watchdog.is_leader
        # The first has not heard of it yet: the database refuses, not its memory.
        await first.retention.run_once()
        assert harness.one("select count(*) from laneway.outcome") == 700
        await second.rounds()
        assert harness.one("select count(*) from laneway.outcome") == 0


async def test_old_slots_are_forgotten_soon_however_many_there_are(harness: WorkerHarness) -> None:
    harness.do(
        "insert into laneway.schedule_slots (schedule, slot, outcome, at)"
        " select 'often', t, 'submitted', t from generate_series(1, 2500) n,"
        "  lateral (select clock_timestamp() - make_interval(days => 40, secs => n) as t) x"
    )
    async with keeper(harness) as kept:
        await kept.watchdog.run_once()
        delays = [await kept.retention.run_once() for _ in range(3)]
    assert harness.one("select count(*) from laneway.schedule_slots where schedule = 'often'") == 1
    assert max(delay or 0.0 for delay in delays) < module.PRUNE_S / 10


async def test_new_leader_forgets_the_log_of_another_cluster_at_once(
    harness: WorkerHarness,
) -> None:
    # As after a dump and restore: numbers of transactions that are still to come here.
    harness.do(
        "insert into laneway.events (xid, name, state) values ('9000000000', 'job.claimed', '{}')"
    )
    harness.do("update laneway.event_log set pruned_xid = '9000000000'")
    harness.do(
        "insert into laneway.watches (seq, until, born, settled)"
        " values (0, clock_timestamp() + interval '1 hour', '9000000000', true)"
    )
    async with keeper(harness) as kept:
        await kept.watchdog.run_once()
        await kept.retention.run_once()
    # A stream that begins now can be resumed from what it was sent.
    since = harness.one("select laneway.log_snapshot()::text")
    assert harness.one("select count(*) from laneway.events") == 0
    resumable = (
        "select (select pg_visible_in_snapshot(born, pg_current_snapshot()) from laneway.watches)"
        " and (select l.pruned_xid <= pg_snapshot_xmin(%s::pg_snapshot) from laneway.event_log l)"
    )
    assert harness.one(resumable, since)


async def test_old_events_and_watches_are_forgotten(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SWEEP_S", 0.0)
    harness.do(
        "insert into laneway.events (name, state)"
        " select 'jobs.changed', '{}' from generate_series(1, 2500)"
    )
    harness.do("insert into laneway.watches (seq, until) values (0, now()), (1, 'infinity')")
    async with keeper(harness) as keep:
        await keep.watchdog.run_once()
        for _ in range(2):
            await keep.rounds()
            assert harness.one("select count(*) from laneway.events") == 2500
        # A transaction may have been open at a mark: then a later one counts.
        deadline = time.monotonic() + 90
        while harness.one("select count(*) from laneway.events") and time.monotonic() < deadline:
            harness.do("update laneway.event_log set new_at = new_at - interval '16 minutes'")
            await keep.rounds()
    assert harness.one("select count(*) from laneway.events") == 0
    assert harness.one("select array_agg(seq) from laneway.watches") == [1]


async def test_waiting_job_over_its_age_fails_in_a_running_cluster(
    harness: WorkerHarness,
) -> None:
    @harness.lw.handler("never")
    async def never(ctx: Context) -> None:
        raise AssertionError("must not start")

    job = await harness.lw.submit("never", {}, delay=3600)
    harness.do("insert into laneway.deadlines values (%s, clock_timestamp())", harness.seq(job))
    await harness.start_worker()
    ended = await harness.ended(job)
    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error.type == "MaxAge"
    assert ended.attempt == 0


async def test_running_job_over_its_age_fails_and_its_handler_is_stopped(
    harness: WorkerHarness,
) -> None:
    stopped = asyncio.Event()

    @harness.lw.handler("slow")
    async def slow(ctx: Context) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    harness.lane("default", lease_seconds=2)
    job = await harness.lw.submit("slow", {})
    await harness.start_worker()
    await harness.running(job)
    harness.do(
        "insert into laneway.deadlines values (%s, clock_timestamp())"
        " on conflict (seq) do update set at = excluded.at",
        harness.seq(job),
    )
    ended = await harness.ended(job)
    assert ended.status == "failed"
    assert ended.error is not None
    assert "older than max_age" in ended.error.message
    await wait_until(stopped.is_set)
    await wait_until(harness.holds_nothing)


async def test_approval_that_does_not_come_cancels_the_job(harness: WorkerHarness) -> None:
    job = await harness.lw.submit("report", {})
    harness.do(
        "with w as (delete from laneway.ready returning seq, rank)"
        " insert into laneway.awaiting (seq, job_type, workspace, rank, expires_at)"
        " select seq, 'report', 'default', rank, clock_timestamp() from w"
    )

    @harness.lw.handler("other")
    async def other(ctx: Context) -> None: ...

    await harness.start_worker()
    assert (await harness.ended(job)).status == "cancelled"


async def test_many_overaged_jobs_end_without_waiting_for_the_next_round(
    harness: WorkerHarness,
) -> None:
    for _ in range(3):
        await harness.lw.submit_many([("late", {}, {"delay": 3600}) for _ in range(200)])
    harness.do(
        "insert into laneway.deadlines select seq, clock_timestamp() from laneway.delayed"
        " on conflict (seq) do update set at = excluded.at"
    )
    async with keeper(harness) as kept:
        await kept.watchdog.run_once()
        await kept.rounds()
    assert harness.count("failed") == 600
    assert harness.one("select count(*) from laneway.deadlines") == 0


async def test_job_is_kept_while_it_is_unique_and_its_period_is_deleted_later(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_many(harness, 2, days=100)
    first, second = (row[0] for row in harness.rows("select seq from laneway.jobs order by seq"))
    harness.do(
        "insert into laneway.unique_periods values"
        " ('default', 'old', 'a', %s, clock_timestamp() + interval '1 hour'),"
        " ('default', 'old', 'b', %s, clock_timestamp() - interval '1 second')",
        first,
        second,
    )
    async with keeper(harness) as one:
        await one.watchdog.run_once()
        await one.rounds()
        assert harness.rows("select seq from laneway.jobs") == [(first,)]
        assert harness.rows("select seq from laneway.unique_periods") == [(first,)]
        harness.do("update laneway.unique_periods set until = clock_timestamp()")
        later = SimpleNamespace(monotonic=lambda: time.monotonic() + module.WALK_S)
        monkeypatch.setattr(module, "time", later)
        await one.rounds()
    assert harness.rows("select seq from laneway.jobs") == []
    assert harness.rows("select seq from laneway.unique_periods") == []
