"""Take-over: the time until another process leads and reads due schedules."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import pytest

from laneway.config.settings import Settings
from laneway.engine.leader.watchdog import Watchdog
from laneway.observability.log_throttle import LogThrottle
from laneway.store.database import Database
from tests.support.worker_harness import WorkerHarness

# A service spreads its delays by a tenth.
SPREAD = 1.1
MakeWatchdog = Callable[..., Watchdog]
# Every waiting job is claimed by a worker that is gone.
ABANDON = """
    with gone as (delete from laneway.ready returning seq)
    insert into laneway.lease (seq, attempt, worker_id, lane, job_type, workspace, rank,
                               retries, max_retries, keyed, lease_seconds, claimed_at, lease_until)
    select j.seq, 1, gen_random_uuid(), 'default', j.job_type, j.workspace, 0, 0, j.max_retries,
           false, 30, clock_timestamp(), clock_timestamp() - interval '1 second'
      from gone join laneway.jobs j using (seq) order by j.seq
"""


@pytest.fixture
async def make_watchdog(dsn: str) -> AsyncIterator[MakeWatchdog]:
    """Watchdogs of several processes, called by the test."""
    async with AsyncExitStack() as stack:

        def make(**settings: Any) -> Watchdog:
            chosen = Settings.load(database_url=dsn, **settings)
            database = Database(dsn, chosen, role="worker", size=1)
            stack.push_async_callback(database.close)
            return Watchdog(database, chosen, LogThrottle(), uuid4(), lambda types: None)

        yield make


async def delay_of(watchdog: Watchdog) -> float:
    delay = await watchdog.run_once()
    assert delay is not None
    return delay


async def test_leader_that_is_gone_is_replaced_within_three_seconds(
    make_watchdog: MakeWatchdog, harness: WorkerHarness
) -> None:
    leader, follower = make_watchdog(), make_watchdog()
    renewed_in_s = await delay_of(leader)
    assert leader.is_leader
    left_s = float(
        harness.one("select extract(epoch from held_until - clock_timestamp()) from laneway.leader")
    )
    # The longest time from a kill right after a renewal to the look that takes over.
    assert left_s + (await delay_of(follower)) * (SPREAD - 1) < 3
    assert not follower.is_leader
    # And a leader that lives renews well before.
    assert renewed_in_s * SPREAD < left_s - 0.5


async def test_follower_looks_again_when_the_leader_lapses(
    make_watchdog: MakeWatchdog, harness: WorkerHarness
) -> None:
    leader, follower = make_watchdog(leader_ttl=600.0), make_watchdog(leader_ttl=600.0)
    await leader.run_once()
    lapses = "update laneway.leader set held_until = clock_timestamp() + interval '40 seconds'"
    harness.do(lapses)
    assert 30 < await delay_of(follower) <= 40 * SPREAD
    harness.do("update laneway.leader set held_until = clock_timestamp()")
    await follower.run_once()
    assert follower.is_leader


async def test_leader_looks_again_when_the_next_lease_lapses(
    make_watchdog: MakeWatchdog, harness: WorkerHarness
) -> None:
    leader = make_watchdog(leader_ttl=600.0, watchdog_interval=60.0)
    harness.do(
        "insert into laneway.lease (seq, attempt, worker_id, lane, job_type, workspace, rank,"
        " retries, max_retries, keyed, lease_seconds, claimed_at, lease_until)"
        " values (1, 1, gen_random_uuid(), 'default', 't', 'default', 0, 0, 3, false, 30,"
        " clock_timestamp(), clock_timestamp() + interval '40 seconds')"
    )
    assert 10 < await delay_of(leader) <= 40 * SPREAD
    harness.do("delete from laneway.lease")
    assert await delay_of(leader) == 60


async def test_leader_logs_each_attempt_that_it_takes_back(
    make_watchdog: MakeWatchdog, harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    leader = make_watchdog(leader_ttl=600.0)
    again = await harness.lw.submit("mail")
    last = await harness.lw.submit("mail", max_retries=0)
    harness.do(ABANDON)
    await leader.run_once()
    lost = r"attempt 1 was taken back: worker \S+ did not renew its lease"
    warned = [r.getMessage() for r in caplog.records if "taken back" in r.getMessage()]
    assert {r.levelno for r in caplog.records} == {logging.WARNING}
    # Ordered by worker: each lost one of them.
    first, second = sorted(warned)
    assert re.fullmatch(f"mail {again.id}: {lost}; queued again", first)
    assert re.fullmatch(f"mail {last.id}: {lost}; failed: no retries left", second)


async def test_leader_counts_attempts_that_it_takes_back_in_numbers(
    make_watchdog: MakeWatchdog, harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    leader = make_watchdog(leader_ttl=600.0)
    await harness.lw.submit_many([("mail", None)] * 8)
    harness.do(ABANDON)
    await leader.run_once()
    warned = [r.getMessage() for r in caplog.records if "taken back" in r.getMessage()]
    assert {r.levelno for r in caplog.records} == {logging.WARNING}
    assert len(warned) == 6
    assert warned[-1] == "3 more attempts were taken back from workers"


async def test_leading_again_after_an_outage_or_a_freeze_is_an_election(
    make_watchdog: MakeWatchdog,
) -> None:
    leader = make_watchdog(leader_ttl=0.05)
    elected: list[int | None] = []
    leader.on_elected = lambda: elected.append(leader.epoch)
    await leader.run_once()
    assert elected == [1]
    # As after a stop of the whole process: no other process led, and due schedules were not seen.
    await asyncio.sleep(0.1)
    await leader.run_once()
    assert elected == [1, 1]


async def test_timely_renewal_is_not_an_election(make_watchdog: MakeWatchdog) -> None:
    leader = make_watchdog(leader_ttl=600.0)
    elected: list[int | None] = []
    leader.on_elected = lambda: elected.append(leader.epoch)
    for _ in range(3):
        await leader.run_once()
    assert elected == [1]


async def test_jump_of_the_databases_clock_is_an_election(
    make_watchdog: MakeWatchdog, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = make_watchdog(leader_ttl=600.0)
    elected: list[int | None] = []
    leader.on_elected = lambda: elected.append(leader.epoch)
    await leader.run_once()
    # Our clock stands for the database's: only the difference counts.
    now = time.monotonic
    monkeypatch.setattr("laneway.engine.leader.watchdog.time.monotonic", lambda: now() - 100)
    await leader.run_once()
    assert elected == [1, 1]


async def test_followers_notice_a_jump_of_the_databases_clock(
    make_watchdog: MakeWatchdog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schedules with a check are theirs too."""
    leader, follower = make_watchdog(leader_ttl=600.0), make_watchdog(leader_ttl=600.0)
    await leader.run_once()
    noticed: list[bool] = []
    follower.on_elected = lambda: noticed.append(follower.is_leader)
    await follower.run_once()
    await follower.run_once()
    assert noticed == []
    now = time.monotonic
    monkeypatch.setattr("laneway.engine.leader.watchdog.time.monotonic", lambda: now() - 100)
    await follower.run_once()
    assert noticed == [False]


async def test_leader_from_a_clock_that_was_set_back_is_replaced(
    make_watchdog: MakeWatchdog, harness: WorkerHarness
) -> None:
    first, second = make_watchdog(), make_watchdog()
    await first.run_once()
    # It is gone, and its right ends in ten minutes.
    harness.do("update laneway.leader set held_until = held_until + interval '10 minutes'")
    await second.run_once()
    assert second.is_leader
