"""Slots are exact in every snapshot, whatever process dies and whatever the limit becomes.

The observer reads leases, limit and counters in one statement. A claim stamps its leases while it
shares a lock that a change of the lane holds alone, so a lease younger than the lane's `updated_at`
was claimed under the limit of the same snapshot: where there is one, the limit binds them all.
"""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from itertools import pairwise
from multiprocessing.process import BaseProcess
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from laneway.store import lanes, leases
from tests.store import claiming_process
from tests.support.store_client import StoreClient

LANE = "counted"
SECONDS = 3.0
PATIENCE = 60.0
OBSERVE = """
select l.max_slots, l.enabled, (select count(*) from laneway.lease where lane = l.name) as leases,
       (select count(*) from laneway.lease
         where lane = l.name and claimed_at > l.updated_at) as young,
       (select coalesce(sum(running), 0) from laneway.slot_usage where lane = l.name) as counted
  from laneway.worker_lanes l where l.name = %s
"""


class Observer(threading.Thread):
    """Polls from outside as fast as it can and records violations."""

    def __init__(self, dsn: str) -> None:
        super().__init__()
        self._dsn = dsn
        self.is_over = threading.Event()
        self.samples = 0
        self.full = 0
        self.most = 0
        self.violations: list[tuple[Any, ...]] = []

    def run(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True, prepare_threshold=0) as conn:
            while not self.is_over.is_set():
                row = conn.execute(OBSERVE, [LANE]).fetchone()
                assert row is not None
                limit, enabled, running, young, counted = row
                self.samples += 1
                self.most = max(self.most, running)
                self.full += running == limit
                over = limit is not None and running > limit
                if counted != running or (young and (over or not enabled)):
                    self.violations.append(row)


def fork() -> Any:
    """Forks of a process with all imports done: a restart costs milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.store.claiming_process"])
    return context


def start(context: Any, dsn: str, seed: int) -> BaseProcess:
    process: BaseProcess = context.Process(
        target=claiming_process.claim_forever, args=(dsn, uuid4(), LANE, "t", seed), daemon=True
    )
    process.start()
    return process


def end(process: BaseProcess) -> None:
    process.kill()
    process.join()
    process.close()


@pytest.mark.slow
def test_no_snapshot_ever_shows_more_jobs_running_than_the_limit_in_force(db: StoreClient) -> None:
    db.do(
        "insert into laneway.worker_lanes (name, job_types, max_slots, lease_seconds)"
        " values (%s, '{t}', 8, 2)",
        LANE,
    )
    db.do(
        "with new as (insert into laneway.jobs (id, job_type, payload, max_retries)"
        " select gen_random_uuid(), 't', '{}', 30000 from generate_series(1, 40000) returning seq)"
        " insert into laneway.ready (seq, job_type, rank) select seq, 't', 0 from new"
    )
    rng, context = random.Random(7), fork()
    seeds = iter(range(10**6))
    workers = [start(context, db.dsn, next(seeds)) for _ in range(4)]
    observer, leader = Observer(db.dsn), uuid4()
    observer.start()
    began = time.monotonic()
    kills = changes = reclaimed = ended = 0
    pace = threading.Event()
    try:
        # A kill may hit a worker between two claims: until one left leases behind, go on.
        while (elapsed := time.monotonic() - began) < PATIENCE:
            if elapsed > SECONDS and reclaimed and ended > 200 and observer.samples > 200:
                break
            limit, enabled = rng.choice([4, 8, 16, 4, 8, 16, None]), rng.random() < 0.9
            db.do(
                "update laneway.worker_lanes set max_slots = %s, enabled = %s where name = %s",
                limit,
                enabled,
                LANE,
            )
            changes += 1
            if kills < elapsed / 0.2:
                end(workers.pop(0))
                workers.append(start(context, db.dsn, next(seeds)))
                kills += 1
            reclaimed += db.run(leases.run_watchdog(leader, 10)).reclaimed
            ended = db.one("select count(*) from laneway.outcome")
            pace.wait(0.05)
    finally:
        for worker in workers:
            end(worker)
        observer.is_over.set()
        observer.join()
    print(
        f"samples {observer.samples}, full {observer.full}, most {observer.most}, kills {kills},"
        f" changes {changes}, reclaimed {reclaimed}, ended {ended}"
    )
    assert observer.violations == []
    assert observer.samples > 200
    assert reclaimed > 0, "no killed worker left anything behind: nothing was tried"
    assert ended > 200
    # A claim of a killed worker may have committed after the last look.
    assert db.slots_agree()


@pytest.mark.slow
def test_one_slot_is_strict_single_file_over_many_processes(db: StoreClient) -> None:
    db.do(
        "insert into laneway.worker_lanes (name, job_types, max_slots) values (%s, '{t}', 1)", LANE
    )
    jobs = 300
    context = fork()
    workers = [
        context.Process(
            target=claiming_process.claim_in_file,
            args=(db.dsn, uuid4(), LANE, "t", jobs),
            daemon=True,
        )
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    submitted = [db.submit() for _ in range(jobs)]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
        worker.close()
    runs = db.rows("select seq, claimed_at, finished_at, worker_id from laneway.outcome order by 2")
    assert [run[0] for run in runs] == submitted
    assert all(a[2] <= b[1] for a, b in pairwise(runs)), "two ran at once"
    assert len({run[3] for run in runs}) > 1, "only one worker came to its turn"


def test_lane_change_waits_for_running_claims_and_blocks_later_ones(
    db: StoreClient, other: StoreClient
) -> None:
    for _ in range(4):
        db.submit()
    db.begin()
    assert len(db.claimed(2)) == 2
    changing = other.later(
        lambda: other.do("update laneway.worker_lanes set max_slots = 2 where name = 'default'")
    )
    db.await_blocked(other)
    db.commit()
    changing.result(20)
    assert db.claim().state == "full"


@pytest.mark.parametrize(
    "change, state",
    [
        ("update laneway.worker_lanes set max_slots = 0 where name = 'default'", "changed"),
        ("update laneway.worker_lanes set enabled = false where name = 'default'", "changed"),
        ("update laneway.control set paused = true", "changed"),
    ],
)
def test_claim_does_not_commit_under_changed_configuration(
    db: StoreClient, other: StoreClient, change: str, state: str
) -> None:
    db.submit()
    version = db.version()
    other.begin()
    other.do(change)
    claiming = db.later(lambda: db.claim(version=version))
    other.await_blocked(db)
    other.commit()
    answer = claiming.result(20)
    assert (answer.state, answer.assignments) == (state, [])
    assert db.one("select count(*) from laneway.lease") == 0
    other.run(lanes.pause(False, "me"))


def test_claim_goes_on_when_the_change_it_waited_for_is_taken_back(
    db: StoreClient, other: StoreClient
) -> None:
    db.submit()
    other.begin()
    other.do("update laneway.worker_lanes set max_slots = 0 where name = 'default'")
    version = db.version()
    claiming = db.later(lambda: db.claim(version=version))
    other.await_blocked(db)
    other.rollback()
    assert len(claiming.result(20).assignments) == 1


def test_two_claims_of_a_bounded_lane_share_its_slots_exactly(
    db: StoreClient, other: StoreClient
) -> None:
    db.do("update laneway.worker_lanes set max_slots = 3 where name = 'default'")
    for _ in range(9):
        db.submit()
    version = db.version()
    other.begin()
    assert len(other.claimed(2)) == 2
    claiming = db.later(lambda: db.claim(5, version=version))
    other.await_blocked(db)
    other.commit()
    assert len(claiming.result(20).assignments) == 1


def test_full_lane_delays_no_other(db: StoreClient, other: StoreClient) -> None:
    db.do("update laneway.worker_lanes set max_slots = 1 where name = 'interactive'")
    db.submit("polarity")
    db.submit()
    other.begin()
    assert len(other.claimed(5, ["polarity"], lane="interactive")) == 1
    db.do("set lock_timeout = '1ms'")
    assert len(db.claimed()) == 1
    other.rollback()


def test_finish_does_not_wait_for_a_claim_of_another_worker(
    db: StoreClient, other: StoreClient
) -> None:
    db.do("update laneway.worker_lanes set max_slots = 3 where name = 'default'")
    claim = db.running()
    db.submit()
    other.begin()
    assert len(other.claimed(1)) == 1
    db.do("set lock_timeout = '1ms'")
    assert db.settle(claim, "finish") is None
    other.rollback()
