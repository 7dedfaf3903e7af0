"""Damage by manual changes of the tables is found and repaired."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from laneway.config.settings import Settings
from laneway.control import health, jobs, repair
from laneway.control.health_check import Finding, HealthCheck
from laneway.domain.states import Status
from laneway.store import health as store
from laneway.store import leases, retention
from laneway.store.database import Database
from laneway.store.retention import LeaderTerm
from tests.store.test_plans import spent
from tests.support.store_client import StoreClient

STATES = ("outcome", "lease", "ready", "delayed", "key_waiters", "awaiting", "waiting")


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    database = Database(dsn, Settings.load(database_url=dsn), role="tests recovery")
    yield database
    await database.close()


def recount(db: StoreClient) -> int:
    epoch = db.run(leases.run_watchdog(db.worker, 600)).epoch
    assert epoch is not None
    return db.run(retention.recount_usage(LeaderTerm(db.worker, epoch)))


def test_deleted_lease_does_not_keep_its_slot(db: StoreClient) -> None:
    db.do("update laneway.worker_lanes set max_slots = 1 where name = 'default'")
    db.running()
    db.do("delete from laneway.lease")
    db.submit()
    assert db.claim().state == "full"
    assert recount(db) == 1
    assert len(db.claimed()) == 1
    assert db.slots_agree()


def test_deleted_counters_do_not_let_too_many_run(db: StoreClient) -> None:
    db.do("update laneway.worker_lanes set max_slots = 3 where name = 'default'")
    for _ in range(6):
        db.submit()
    assert len(db.claimed()) == 3
    db.do("delete from laneway.slot_usage")
    assert recount(db) == 1
    assert db.claim().state == "full"
    assert db.slots_agree()


def test_counters_of_limits_follow_the_leases_again(db: StoreClient) -> None:
    db.do("insert into laneway.job_types (name, limits) values ('asks', '{openai}')")
    claim = db.running("asks")
    for harm in ("delete from laneway.limit_usage", "update laneway.limit_usage set running = 7"):
        db.do(harm)
        assert not db.limits_agree()
        assert recount(db) == 1
        assert db.limits_agree()
    db.settle(claim, "finish")
    assert db.limits_agree()
    assert db.slots_agree()


def test_counters_that_match_are_left_alone(db: StoreClient) -> None:
    db.running()
    # Also for a process that holds a limit outside of jobs.
    answer = db.one(
        "select answer from laneway.hold_limits(%s, %s, 'box', '{openai}', 0, 600)",
        uuid4(),
        uuid4(),
    )
    assert answer == "granted"
    assert recount(db) == 0


def test_only_the_leader_mends_counters(db: StoreClient) -> None:
    db.running()
    db.do("delete from laneway.slot_usage")
    assert db.run(retention.recount_usage(LeaderTerm(db.worker, 1))) == 0
    assert not db.slots_agree()


def test_end_that_waits_for_its_counter_is_counted_once(
    db: StoreClient, other: StoreClient
) -> None:
    first, second = db.running(), db.running()
    db.do("update laneway.slot_usage set running = 5")
    db.begin()
    db.settle(first, "finish")
    # The end of the first locks the counter; the leases are counted after that lock.
    mended = other.later(lambda: other.one("select laneway.recount()"))
    db.await_blocked(other)
    db.commit()
    assert mended.result() == 1
    assert db.slots_agree()
    db.settle(second, "finish")
    assert db.slots_agree()


async def test_job_in_no_state_is_shown_found_and_mended(
    database: Database, db: StoreClient
) -> None:
    kept = db.submit()
    lost = [db.submit(unique_key="k"), db.submit()]
    for table in STATES:
        db.do(f"delete from laneway.{table} where seq = any (%s)", lost)
    shown = await jobs.show(database, db.id_of(lost[0]))
    assert shown.status is Status.FAILED
    assert shown.error is not None
    assert shown.error.type == "Lost"
    assert "laneway db repair" in shown.error.message
    check = await health.check_lost(database)
    assert (check.finding, check.next) == (Finding.FAIL, "laneway db repair")
    assert check.message.startswith(f"2 jobs have no state, the first is {db.id_of(lost[0])}")
    assert await repair.repair(database, by="ann") == (0, 2, 0)
    assert await repair.repair(database, by="ann") == (0, 0, 0)
    ((who, after),) = db.rows("select actor, after from laneway.audit where kind = 'database'")
    assert (who, after) == ("ann", {"jobs": [str(db.id_of(seq)) for seq in lost]})
    assert (await health.check_lost(database)).finding is Finding.OK
    mended = await jobs.show(database, db.id_of(lost[0]))
    assert mended.error is not None
    assert "`laneway db repair` ended it: retry it" in mended.error.message
    for seq in lost:
        assert db.places(seq) == ["outcome"]
    # The key is free again, and a retry lets the job run.
    assert db.places(db.submit(unique_key="k")) == ["ready"]
    assert db.retry(lost[1]).found_in == "failed"
    await asyncio.to_thread(db.claimed)
    assert db.row("lease", lost[1])["attempt"] > 1
    assert db.places(kept) == ["lease"]


async def test_search_for_lost_jobs_is_bounded_and_reports_it(
    database: Database, db: StoreClient
) -> None:
    kept, lost = _many_jobs(db)
    newest = health.NEWEST_SCANNED + health.PLACES * health.SCANNED_PER_PLACE
    used = spent(db, lambda: db.run(store.sample_lost(newest=100, places=4, each=50)))
    # Of each job its own row, twice, and one that says its state, or none in seven tables.
    assert sum(used[table] for table in ("jobs", *STATES)) <= 3 * (100 + 4 * 50) + 200
    found = db.run(store.sample_lost(newest=100, places=4, each=50))
    assert not found.is_whole
    assert len(found.ids) >= 50
    check = await health.check_lost(database)
    assert check.finding is Finding.FAIL
    assert f"of {newest:,} looked at" not in check.message
    looked: list[int] = []
    assert await repair.repair(database, by="ann", on_progress=looked.append) == (0, lost, 0)
    assert await health.check_lost(database) == HealthCheck(
        "jobs", Finding.OK, "every job has a state"
    )
    db.run(store.end_lost([kept]))
    assert db.one("select count(*) from laneway.outcome where error ->> 'type' = 'Lost'") == lost


async def test_repair_looks_at_a_part_of_the_jobs_at_a_time(
    database: Database, db: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.control.repair.SCAN", 300)
    monkeypatch.setattr("laneway.control.repair.BATCH", 200)
    monkeypatch.setattr("laneway.control.health.NEWEST_SCANNED", 100)
    _, lost = _many_jobs(db)
    looked: list[int] = []
    assert await repair.repair(database, by="ann", on_progress=looked.append) == (0, lost, 0)
    assert looked == [300, 600, 900]
    check = await health.check_lost(database)
    assert check.message == "every job of 20,100 checked, the newest and a sample, has a state"


def _many_jobs(db: StoreClient) -> tuple[int, int]:
    """A thousand jobs of which the oldest 400 are lost; one that is not, and how many are."""
    db.do("insert into laneway.jobs (seq, id, job_type, payload)"
            " select g, gen_random_uuid(), 't', '{}' from generate_series(1, 1000) g")  # fmt: skip
    db.do("insert into laneway.ready (seq, job_type, rank)"
            " select seq, job_type, 0 from laneway.jobs where seq > 400")  # fmt: skip
    return 1000, 400
