"""Limits and keys are exact in every snapshot, whatever process dies and whatever a limit becomes.

The observer reads leases, limits, counters and keys in one statement. As with slots, a lease that
is younger than a limit's `updated_at` was claimed under the limit of the same snapshot: where there
is one, the limit binds all that hold it.
"""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from multiprocessing.process import BaseProcess
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from laneway.store import jobs, leases
from laneway.store.leases import Verdict
from tests.store import claiming_process
from tests.support.store_client import StoreClient

SECONDS = 3.0
PATIENCE = 60.0
JOBS = 4000
KEYS = 40
PERIOD = 0.25
RATE = 20
SERVED = {"bounded": ["plain", "one", "both"], "open": ["two", "rated"]}
SET_UP = f"""
insert into laneway.limits (name, max_concurrent, rate_count, rate_period_s)
values ('x', 4, null, null), ('y', 2, null, null), ('r', null, {RATE}, {PERIOD});
insert into laneway.job_types (name, limits)
values ('plain', '{{}}'), ('one', '{{x}}'), ('both', '{{x,y}}'), ('two', '{{y}}'),
       ('rated', '{{r}}');
insert into laneway.worker_lanes (name, job_types, max_slots, lease_seconds)
values ('bounded', '{{plain,one,both}}', 8, 2), ('open', '{{two,rated}}', null, 2);
insert into laneway.jobs (id, job_type, payload, max_retries, concurrency_key)
select gen_random_uuid(), (array['plain', 'one', 'both', 'two', 'rated'])[1 + mod(g, 5)], '{{}}',
       30000, case when mod(g, 3) > 0 then 'key ' || mod(g, {KEYS}) end
  from generate_series(1, {JOBS}) g;
insert into laneway.ready (seq, job_type, rank) select seq, job_type, 0 from laneway.jobs
"""
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"
OBSERVE = """
with held as materialized (
    select m as name, l.worker_id, l.claimed_at from laneway.lease l, unnest(l.limits) m
), usage as materialized (
    select l.name, l.max_concurrent,
           (select count(*) from held h where h.name = l.name) as held,
           (select count(*) from held h
             where h.name = l.name and h.claimed_at > l.updated_at) as young,
           (select coalesce(sum(u.running), 0) from laneway.limit_usage u
             where u.limit_name = l.name) as counted
      from laneway.limits l where l.name in ('x', 'y', 'r')
)
select (select jsonb_agg(u) from usage u
         where u.counted <> u.held or (u.young > 0 and u.held > u.max_concurrent)) as over,
       (select sum(held) from usage) as held,
       (select jsonb_agg(k) from (
            select workspace, concurrency_key from laneway.lease
             where concurrency_key is not null group by 1, 2 having count(*) > 1) k) as twice,
       (select count(*) from laneway.lease l left join laneway.key_holders h
            on h.workspace = l.workspace and h.concurrency_key = l.concurrency_key
         where l.concurrency_key is not null and h.seq is distinct from l.seq) as unheld,
       (select count(*) from laneway.key_waiters w left join laneway.key_holders h
            on h.workspace = w.workspace and h.concurrency_key = w.concurrency_key
         where h.seq is null and not exists (
            select from laneway.ready r join laneway.jobs j on j.seq = r.seq
             where r.job_type = w.job_type and j.workspace = w.workspace
               and j.concurrency_key = w.concurrency_key)) as forgotten,
       (select count(*) from laneway.key_waiters) as waiting
"""


class Observer(threading.Thread):
    """Polls from outside as fast as it can and records violations."""

    def __init__(self, dsn: str) -> None:
        super().__init__()
        self._dsn = dsn
        self.is_over = threading.Event()
        self.samples = 0
        self.busy = 0
        self.waiting = 0
        self.violations: list[tuple[Any, ...]] = []

    def has_seen_enough(self) -> bool:
        """Whether limits were held and waited for often enough to prove anything."""
        return self.samples > 100 and min(self.busy, self.waiting) > 20

    def run(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True, prepare_threshold=0) as conn:
            while not self.is_over.is_set():
                row = conn.execute(OBSERVE).fetchone()
                assert row is not None
                over, held, twice, unheld, forgotten, waiting = row
                self.samples += 1
                self.busy += held > 0
                self.waiting += waiting > 0
                if over or twice or unheld or forgotten:
                    self.violations.append(row)


def fork() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.store.claiming_process"])
    return context


def start(context: Any, dsn: str, seed: int, rooms: tuple[int, ...] = (1, 3, 20)) -> BaseProcess:
    process: BaseProcess = context.Process(
        target=claiming_process.claim_mixed_forever,
        args=(dsn, uuid4(), SERVED, rooms, seed),
        daemon=True,
    )
    process.start()
    return process


def end(process: BaseProcess) -> None:
    assert process.exitcode is None, "a claiming process failed: see its output"
    process.kill()
    process.join()
    process.close()


def meddle(db: StoreClient, rng: random.Random) -> None:
    """Concurrent changes by operators: of limits, and of waiting jobs."""
    db.do(
        "update laneway.limits set max_concurrent = %s where name = %s",
        rng.choice([0, 1, 2, 4, 8, None]),
        rng.choice("xy"),
    )
    for (seq,) in db.rows("select seq from laneway.key_waiters order by random() limit 3"):
        db.run(jobs.reprioritize(db.id_of(seq), rng.choice([-1, 0, 1])))
    for (seq,) in db.rows(
        "select seq from laneway.key_holders union all"
        " (select seq from laneway.key_waiters limit 1) order by 1 limit 2"
    ):
        db.cancel(seq)


def drain(db: StoreClient) -> None:
    """End all remaining jobs."""
    db.do(
        "update laneway.limits set max_concurrent = null, rate_count = null, rate_period_s = null"
    )
    db.do("update laneway.worker_lanes set max_slots = null")
    db.do("update laneway.lease set lease_until = '-infinity'")
    deadline = time.monotonic() + PATIENCE
    while db.one("select count(*) from laneway.outcome") < JOBS:
        assert time.monotonic() < deadline, "something waits forever"
        db.run(leases.run_watchdog(db.worker, 60))
        db.do(
            "with d as (delete from laneway.delayed returning *)"
            " insert into laneway.ready (seq, job_type, rank, attempt, retries)"
            " select seq, job_type, rank, attempt, retries from d"
        )
        for lane, types in SERVED.items():
            claims = db.claimed(300, types, lane=lane)
            if claims:
                db.run(leases.settle([Verdict(c, "finish") for c in claims]))


@pytest.mark.slow
def test_no_snapshot_ever_shows_a_limit_or_a_key_held_too_often(db: StoreClient) -> None:
    db.do(SET_UP)
    rng = random.Random(11)
    context = fork()
    seeds = iter(range(10**6))
    before = db.one(DEADLOCKS)
    workers = [start(context, db.dsn, next(seeds)) for _ in range(5)]
    observer, leader = Observer(db.dsn), uuid4()
    observer.start()
    began = time.monotonic()
    kills = reclaimed = 0
    pace = threading.Event()
    try:
        while (elapsed := time.monotonic() - began) < PATIENCE:
            if elapsed > SECONDS and reclaimed and observer.has_seen_enough():
                break
            meddle(db, rng)
            if kills < elapsed / 0.2:
                end(workers.pop(0))
                workers.append(start(context, db.dsn, next(seeds)))
                kills += 1
            reclaimed += db.run(leases.run_watchdog(leader, 10)).reclaimed
            pace.wait(0.05)
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
        observer.is_over.set()
        observer.join()
    ended = db.one("select count(*) from laneway.outcome")
    starts = db.one("select coalesce(sum(attempt), 0) from laneway.jobs_view")
    print(
        f"samples {observer.samples}, busy {observer.busy}, waiting {observer.waiting},"
        f" kills {kills}, reclaimed {reclaimed}, starts {starts}, ended {ended}"
    )
    assert observer.violations == []
    assert observer.has_seen_enough()
    assert reclaimed > 0, "no killed worker left anything behind: nothing was tried"
    assert db.one(DEADLOCKS) == before
    assert most_in_a_period(db) <= RATE
    # A claim of a killed worker may have committed after the last look.
    assert db.slots_agree()
    assert db.limits_agree()
    assert db.keys_agree()
    drain(db)
    assert db.one("select count(*) from laneway.key_waiters") == 0
    assert db.one("select count(*) from laneway.key_holders") == 0
    assert db.one("select coalesce(sum(abs(running)), 0) from laneway.limit_usage") == 0
    assert db.slots_agree()


def most_in_a_period(db: StoreClient) -> int:
    return int(
        db.one(
            "select coalesce(max(n), 0) from (select count(*) over (order by claimed_at"
            f" range between interval '{PERIOD} s' preceding and current row) as n from ("
            " select claimed_at from laneway.lease where job_type = 'rated'"
            " union all select claimed_at from laneway.outcome"
            "  where job_type = 'rated' and claimed_at is not null"
            " union all select a.claimed_at from laneway.attempts a join laneway.jobs j using (seq)"
            "  where j.job_type = 'rated') c) w"
        )
    )


@pytest.mark.slow
def test_large_batches_over_shared_lanes_limits_and_keys_never_deadlock(db: StoreClient) -> None:
    db.do(SET_UP)
    # No limit binds, so that all use the same rows; two types name limits in opposite order.
    db.do("update laneway.limits set max_concurrent = 500 where name in ('x', 'y', 'r')")
    db.do("update laneway.limits set rate_count = 100000 where name = 'r'")
    db.do("update laneway.job_types set limits = '{y,x}' where name = 'two'")
    db.do("update laneway.worker_lanes set max_slots = 400 where name in ('bounded', 'open')")
    before = db.one(DEADLOCKS)
    context = fork()
    workers = [start(context, db.dsn, seed, (40,)) for seed in range(6)]
    pace = threading.Event()
    deadline = time.monotonic() + PATIENCE
    try:
        # While jobs are left.
        while db.one("select count(*) from laneway.outcome") < JOBS * 3 // 4:
            assert time.monotonic() < deadline
            pace.wait(0.05)
    finally:
        failed = [worker.exitcode for worker in workers if worker.exitcode is not None]
        for worker in workers:
            worker.kill()
            worker.join()
    assert failed == [], "a claiming process failed: see its output"
    assert db.one(DEADLOCKS) == before
    assert db.keys_agree()
    assert db.limits_agree()
